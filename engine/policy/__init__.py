"""What may be done: rules by tool and by category, judged deny first, then ask, then allow; no rule means no."""
