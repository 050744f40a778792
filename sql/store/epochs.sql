SELECT id, token_epoch FROM users WHERE token_epoch > 0
