SELECT secret_check FROM identity WHERE id = 1
