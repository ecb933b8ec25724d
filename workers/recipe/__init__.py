"""What a recipe is made of; others see it through the contract."""
