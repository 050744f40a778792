SELECT written FROM probe WHERE id = 1
