"""The router: owns client connections, and never keeps game state."""
