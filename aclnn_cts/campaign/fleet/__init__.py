"""The workers of a campaign: local processes or Ray actors, their jobs, logs and recovery.

May import `triage`, `campaign.corpus` and what is below them. Start reading at `dispatch`, then `worker`.
"""
