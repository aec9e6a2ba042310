"""The policy: rules on tools and categories. Deny is stricter than ask, and ask is stricter than allow. Without a rule, a call is
denied."""
