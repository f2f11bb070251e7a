"""What the lanes claim and acknowledge."""
