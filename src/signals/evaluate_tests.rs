use super::*;

#[test]
#[ignore]
fn repro() {
    let mut hs = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir("/work/shared/data/ohlc").unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "csv")).collect();
    names.sort();
    for p in names {
        let text = std::fs::read_to_string(&p).unwrap();
        let candles = text.lines().skip(1).map(|l| {
            let f: Vec<_> = l.split(',').collect();
            let e = |s: &str| crate::base::candle::price_e4(s.parse().unwrap()).unwrap();
            Candle { date: f[0].parse().unwrap(), open_e4: e(f[1]), high_e4: e(f[2]), low_e4: e(f[3]), close_e4: e(f[4]), volume: f[5].parse::<f64>().unwrap() as i64 }
        }).collect();
        hs.push(History { symbol: p.file_stem().unwrap().to_string_lossy().into_owned(), candles });
    }
    let u = Universe::examine(&hs, |_| ());
    let j = u.judged();
    let s = Scores::of(&j);
    println!("{} hit {:.5} conf {:.5} min {:.4} max {:.4} brier {:.6} ll {:.5} ece {:.4}", s.signals, s.hit_rate(), s.mean_confidence(), s.lowest, s.highest, s.brier(), s.log_loss(), s.calibration_error);
    println!("{:?}", u.dates()[504]);
    let last = u.dates().len() - 1;
    let on = u.signals_on(last);
    println!("{} {:?} {} {} {:.6}", on.len(), u.dates()[last], on[0].symbol, on[0].key.function_name(), on[0].weight.confidence);
    for k in Key::all() { let w = u.weigh(k, last); if w.dates >= 30 { println!("{} {:?} {} {} {:.6} base {:.5}", k.function_name(), k.direction(), w.signals, w.dates, w.confidence, w.base_rate); } }
}
