"""Generators and checks of this repository. None of it is installed by users."""
