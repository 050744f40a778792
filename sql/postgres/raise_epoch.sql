UPDATE leadership SET epoch = ?1 WHERE role = 'feed' AND epoch < ?1
