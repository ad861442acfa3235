"""Random queries over real and made-up tables, and a judge of the answers that the product gives to them early."""
