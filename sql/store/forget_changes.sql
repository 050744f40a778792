DELETE FROM changes WHERE number <= (SELECT made FROM change_count WHERE id = 1) - ?1
