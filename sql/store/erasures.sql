SELECT erasures, erasures_cleaned FROM identity WHERE id = 1
