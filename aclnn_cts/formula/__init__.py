"""An operator's mathematics, written once."""
