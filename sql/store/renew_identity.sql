UPDATE identity SET database_id = ?1, cluster_id = coalesce(?2, cluster_id), secret_check = NULL
WHERE id = 1
