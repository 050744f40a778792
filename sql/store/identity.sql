SELECT database_id, starts, cluster_id FROM identity WHERE id = 1
