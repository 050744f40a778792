SELECT made, noticed FROM change_count WHERE id = 1
