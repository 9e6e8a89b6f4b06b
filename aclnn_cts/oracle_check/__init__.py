"""Is an oracle right? What its formula lets one derive, held against it."""
