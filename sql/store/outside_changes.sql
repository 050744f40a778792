SELECT made, noticed FROM outside_changes WHERE id = 1
