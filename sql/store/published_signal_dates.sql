SELECT date FROM signal_dates WHERE date > '' ORDER BY date
