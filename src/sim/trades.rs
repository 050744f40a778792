//! The brokers' calls for trades: broker A's of today, broker B's of a range of dates. Connection
//! threads run this.

use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::{Broker, clock};
use crate::sim::broker_a::portfolio::held;
use crate::sim::exchange::universe::rupees;
use crate::sim::server::message::price;
use crate::sim::trade_history::history;
use crate::sim::world::Call;

/// Longest range of broker B's call.
const RANGE_DAYS_MAX: i32 = 366;

/// Broker A's `/trades`: those of today set by a control route, or else one share bought and sold.
///
/// The shares that positions show as bought today are not among them: what a seeded account holds
/// stays the same from day to day, so they would never arrive.
pub(super) fn of_today(call: &Call<'_>, user_id: &str) -> Value {
    if let Some(set) = call.world.accounts.lock().trades_a(user_id) {
        return Value::Array(set.net);
    }
    let held = held(call.world, user_id);
    let Some(last) = held.last() else {
        return json!([]);
    };
    let tick = call.tick(last.instrument);
    let is_today = tick.date == clock::zoned(call.now).date() && tick.open > 0;
    if !is_today {
        return json!([]);
    }
    let share = last.instrument;
    let quantity = 1 + last.quantity / 4;
    let row = |number: i64, side: &str, paise: i64, second: &str| {
        let at = format!("{} 09:15:{second}", tick.date);
        let order = format!("26{:06}{number:07}", share.exchange_token());
        json!({
            "trade_id": format!("{}", 70_000_000 + 10 * share.exchange_token() + number),
            "order_id": order, "exchange_order_id": format!("13{order}"),
            "tradingsymbol": share.symbol, "exchange": share.exchange,
            "instrument_token": share.token, "transaction_type": side, "product": "MIS",
            "average_price": price(paise), "quantity": quantity, "fill_timestamp": at,
            "order_timestamp": format!("09:15:{second}"), "exchange_timestamp": at,
        })
    };
    // Not the high of the day, which moves.
    let later = tick.open + share.tick_paise * (1 + tick.open / share.tick_paise.max(1) / 100);
    json!([row(1, "BUY", tick.open, "20"), row(2, "SELL", later, "40")])
}

/// Members of the body of broker B's call.
#[derive(Deserialize)]
struct RangeBody {
    from_date: String,
    to_date: String,
    exchange_code: String,
}

/// Broker B's trades of the range that the body names: those set by a control route, or else the
/// seeded ones.
///
/// # Errors
/// The broker's words for what is wrong with the range.
pub(super) fn of_range(call: &Call<'_>, user_id: &str) -> Result<Vec<Value>, &'static str> {
    let body: RangeBody =
        sonic_rs::from_slice(&call.request.body).map_err(|_| "from_date cannot be empty")?;
    let day = |text: &str| text.get(..10).and_then(|day| day.parse::<Date>().ok());
    let from = day(&body.from_date).ok_or("from_date is not valid")?;
    let to = day(&body.to_date).ok_or("to_date is not valid")?;
    if from > to || (to - from).get_days() > RANGE_DAYS_MAX {
        return Err("Date range should be of one year at most");
    }
    if body.exchange_code != "NSE" {
        return Ok(Vec::new());
    }
    if let Some(set) = call.world.accounts.lock().trades_b(user_id) {
        let is_asked = |row: &Value| {
            let date = row["trade_date"].as_str().and_then(written_day);
            date.is_none_or(|date| (from..=to).contains(&date))
        };
        return Ok(set.net.into_iter().filter(is_asked).collect());
    }
    let today = clock::zoned(call.now).date();
    let events = history(call.world, Broker::B, user_id, today);
    let asked = events
        .iter()
        .filter(|event| (from..=to).contains(&event.date));
    let trades = asked.filter(|event| event.kind.is_trade()).map(|event| {
        let value = rupees(event.paise * event.quantity);
        let brokerage = (value / rust_decimal::Decimal::from(400)).round_dp(2);
        let side = if event.kind.is_purchase() {
            "Buy"
        } else {
            "Sell"
        };
        json!({
            "book_type": "Trade-Book", "trade_date": event.date.strftime("%d-%b-%Y").to_string(),
            "stock_code": event.name, "action": side,
            "quantity": event.quantity.to_string(), "average_cost": rupees(event.paise).to_string(),
            "brokerage_amount": brokerage.to_string(), "total_taxes": "0.05",
            "product_type": "Cash", "exchange_code": "NSE",
            "order_id": format!("{}N{:09}", event.date.strftime("%Y%m%d"), event.number),
            "segment": "Rolling", "settlement_code": format!("{}1", event.date.strftime("%Y%j")),
            "dp_id": "IN300000", "client_id": "00000001", "ltp": "0.00",
            "eatm_withheld_amount": "0.00", "cash_withheld_amount": "0.00", "order_type": null,
            "expiry_date": null, "right": null, "strike_price": null,
        })
    });
    Ok(trades.collect())
}

/// `05-Feb-2025`.
fn written_day(text: &str) -> Option<Date> {
    Date::strptime("%d-%b-%Y", text).ok()
}
