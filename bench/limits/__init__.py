"""What the machine and its libraries can do when nothing has to be right but one thing."""
