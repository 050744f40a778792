UPDATE probe SET written = written + 1 WHERE id = 1
