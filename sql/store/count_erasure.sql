UPDATE identity SET erasures = erasures + 1 WHERE id = 1
