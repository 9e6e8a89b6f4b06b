"""Campaigns: hours of trials on many devices, one finding a fault."""
