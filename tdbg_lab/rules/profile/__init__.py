"""Rules on where the time goes and what the machines do. They have no say in whether training is right."""
