"""The state store: owns room state and its generations, and never runs room code."""
