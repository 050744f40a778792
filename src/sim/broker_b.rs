//! Broker B's API: the session exchange and the three portfolio reads, with the signature verified
//! over the bytes received. Every read is a GET that carries a JSON body. Connection threads run
//! this.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::clock;
use crate::sim::broker_a::checksum_of;
use crate::sim::broker_a::portfolio::held;
use crate::sim::broker_b_master::master_answer;
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::universe::rupees;
use crate::sim::fault_kinds::Kind;
use crate::sim::server::message::{Answer, map};
use crate::sim::sessions::Login;
use crate::sim::trades;
use crate::sim::world::{Call, is_or_follows};

/// Largest difference between a signature's timestamp and the server's clock.
const SKEW_S_MAX: i64 = 60;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SessionBody {
    session_token: String,
    app_key: String,
}

#[derive(Deserialize)]
struct HoldingsBody {
    exchange_code: Option<String>,
}

/// Answers a request at `route`; `rest` is the remainder of its path.
pub(super) fn answer(call: &Call<'_>, route: &str, rest: &str) -> Answer {
    if call.request.method != "GET" {
        return Answer::text(405, "text/html", "<html><body>405 - not allowed</body></html>");
    }
    if route == "broker_b.master" {
        return master_answer(call.world, rest);
    }
    let api_key = api_key(call);
    if !call.within_limit(|limits, at_ms| limits.of(&api_key).broker_b_minute.admit(at_ms)) {
        return bare_error(429, 5, "Limit exceed: API call per minute:Try after some time");
    }
    if !call.within_limit(|limits, at_ms| limits.of(&api_key).broker_b_day.admit(at_ms)) {
        return bare_error(429, 5, "Limit exceed: API call per day: Try tomorrow");
    }
    if call.request.header("content-type") != Some("application/json") {
        return error(500, "Content-Type has to be application/json");
    }
    if route == "broker_b.customerdetails" {
        return customer_details(call);
    }
    let login = match signed(call) {
        Ok(login) => login,
        Err(refusal) => return *refusal,
    };
    match route {
        "broker_b.dematholdings" => demat_holdings(call, &login),
        "broker_b.trades" => trades_of_range(call, &login),
        "broker_b.portfolioholdings" => portfolio_holdings(call, &login),
        _ => portfolio_positions(call, &login),
    }
}

/// The API key in the header or in the body of the session exchange; empty if there is none.
fn api_key(call: &Call<'_>) -> String {
    if let Some(api_key) = call.request.header("x-appkey") {
        return api_key.to_owned();
    }
    let body = sonic_rs::from_slice::<SessionBody>(&call.request.body);
    body.map(|body| body.app_key).unwrap_or_default()
}

/// The answer of a fault in place of a route.
pub(super) fn fault(kind: Kind) -> Answer {
    match kind {
        Kind::RateLimit => {
            bare_error(429, 5, "Limit exceed: API call per minute:Try after some time")
        }
        Kind::ExpiredToken => error(500, "Resource not available."),
        _ => error(500, "Error while calling service, Please contact admin (SIM)"),
    }
}

fn success(rows: Value) -> Answer {
    Answer::ok(map([
        ("Success", rows),
        ("Status", 200.into()),
        ("Error", Value::Null),
    ]))
}

/// An error sent with HTTP status 200, as this broker usually does.
fn error(status: i64, text: &str) -> Answer {
    let body = map([
        ("Success", Value::Null),
        ("Status", status.into()),
        ("Error", text.into()),
    ]);
    Answer::rejected(200, body)
}

/// An error without the `Success` member.
fn bare_error(http_status: u16, status: i64, text: &str) -> Answer {
    Answer::rejected(http_status, map([("Status", status.into()), ("Error", text.into())]))
}

/// "No data", in one of its shapes.
fn nothing(success: Value) -> Answer {
    let error = if success == Value::Array(Vec::new()) {
        Value::Null
    } else {
        "No Data Found".into()
    };
    Answer::ok(map([
        ("Success", success),
        ("Status", 200.into()),
        ("Error", error),
    ]))
}

fn customer_details(call: &Call<'_>) -> Answer {
    let Ok(body) = sonic_rs::from_slice::<SessionBody>(&call.request.body) else {
        return error(500, "Invalid session.");
    };
    if !is_or_follows(&call.world.settings.broker_b.api_key, &body.app_key) {
        return error(500, "Public Key does not exist.");
    }
    let redeemed =
        call.world
            .broker_b
            .lock()
            .redeem_api_session(&body.session_token, body.app_key, call.now);
    let Some((session_token, login)) = redeemed else {
        return error(500, "Invalid session.");
    };
    let zoned = clock::zoned(call.now);
    let date = zoned.strftime("%d-%b-%Y").to_string();
    success(json!({
        "exg_trade_date": {"NSE": date, "BSE": date, "FNO": date, "NDX": date},
        "exg_status": {"NSE": "O", "BSE": "O", "FNO": "Y", "NDX": "X"},
        "segments_allowed": {"Trading": "Y", "Equity": "Y", "Derivatives": "Y", "Currency": "N"},
        "idirect_userid": login.user_id, "session_token": session_token,
        "idirect_user_name": "SIMULATED INVESTOR", "idirect_ORD_TYP": "N",
        "idirect_lastlogin_time": zoned.strftime("%d-%b-%Y %H:%M:%S").to_string(),
        "mf_holding_mode_popup_flg": "N", "commodity_exchange_status": "N",
        "commodity_trade_date": date, "commodity_allowed": "N",
    }))
}

/// Verifies the signed headers.
///
/// # Errors
/// The answer to give instead.
fn signed(call: &Call<'_>) -> Result<Login, Box<Answer>> {
    let app = &call.world.settings.broker_b;
    let header = |name| call.request.header(name).unwrap_or_default();
    if !is_or_follows(&app.api_key, header("x-appkey")) {
        return Err(Box::new(error(500, "Public Key does not exist.")));
    }
    let timestamp = header("x-timestamp");
    let expected = format!("token {}", checksum_of(timestamp, &call.request.body, &app.secret_key));
    let in_time = signed_at(timestamp)
        .is_some_and(|at| (at.as_second() - call.now.as_second()).abs() <= SKEW_S_MAX);
    if header("x-checksum") != expected || !in_time {
        let text = "Authentication Fail :: Invalid Checksum.";
        return Err(Box::new(bare_error(401, 5, text)));
    }
    let token = header("x-sessiontoken");
    if token.contains(':') {
        // The decoded form of the token, which only the sockets accept.
        let text = "Invalid length for a Base-64 char array or string.";
        return Err(Box::new(bare_error(401, 5, text)));
    }
    let login = call
        .world
        .broker_b
        .lock()
        .user_of(header("x-appkey"), token, call.now)
        .cloned();
    login.ok_or_else(|| Box::new(error(500, "Resource not available.")))
}

/// `2026-10-01T10:23:56.000Z`, true UTC; the milliseconds are always `.000`.
fn signed_at(text: &str) -> Option<Timestamp> {
    let civil = DateTime::strptime("%Y-%m-%dT%H:%M:%S", text.strip_suffix(".000Z")?).ok()?;
    (text.len() == 24).then_some(())?;
    civil
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}

fn demat_holdings(call: &Call<'_>, login: &Login) -> Answer {
    if call.world.settings.broker_b.empty_account {
        return nothing(Value::Null);
    }
    let rows: Vec<Value> = match call.world.accounts.lock().of_broker_b(&login.user_id) {
        Some(lists) => {
            let rows = lists.demat.iter();
            rows.map(|row| demat_row(&row.stock_code, &row.isin, &row.quantity))
                .collect()
        }
        None => {
            let rows = held(call.world, &login.user_id).into_iter();
            let rows = rows.filter(|held| held.quantity > 0).map(|held| {
                // Pledged shares have left the account at the depository.
                let quantity = (held.quantity - held.pledged).to_string();
                demat_row(held.code_at_b(), held.isin_at_b(), &quantity)
            });
            rows.collect()
        }
    };
    success(Value::Array(rows))
}

fn demat_row(code: &str, isin: &str, quantity: &str) -> Value {
    json!({
        "stock_code": code, "stock_ISIN": isin, "quantity": quantity,
        "demat_total_bulk_quantity": quantity, "demat_avail_quantity": "0",
        "blocked_quantity": "0", "demat_allocated_quantity": quantity,
    })
}

fn trades_of_range(call: &Call<'_>, login: &Login) -> Answer {
    if call.world.settings.broker_b.empty_account {
        return nothing(Value::Null);
    }
    match trades::of_range(call, &login.user_id) {
        Ok(rows) if rows.is_empty() => nothing(Value::Array(rows)),
        Ok(rows) => success(Value::Array(rows)),
        Err(text) => error(500, text),
    }
}

fn portfolio_holdings(call: &Call<'_>, login: &Login) -> Answer {
    let body = sonic_rs::from_slice::<HoldingsBody>(&call.request.body).ok();
    let exchange = body.and_then(|body| body.exchange_code).unwrap_or_default();
    if exchange.is_empty() {
        return error(500, "Exchange-Code cannot be empty");
    }
    if call.world.settings.broker_b.empty_account || exchange != "NSE" {
        return nothing(Value::Array(Vec::new()));
    }
    let ordered = call.world.accounts.lock().of_broker_b(&login.user_id);
    let rows: Vec<Value> = match ordered {
        Some(lists) => {
            let rows = lists.portfolio.iter().filter_map(|row| {
                let tick = call.tick(call.world.universe.by_key(&row.symbol)?);
                let mut shown =
                    portfolio_row(&row.stock_code, &row.quantity, &row.average_price, &tick);
                if row.unpriced {
                    shown["current_market_price"] = "0".into();
                    shown["change_percentage"] = "-100".into();
                }
                Some(shown)
            });
            rows.collect()
        }
        None => {
            let rows = held(call.world, &login.user_id).into_iter().map(|held| {
                let quantity = (held.quantity + held.undelivered).to_string();
                let average = rupees(held.average_paise).to_string();
                portfolio_row(held.code_at_b(), &quantity, &average, &call.tick(held.instrument))
            });
            rows.collect()
        }
    };
    success(Value::Array(rows))
}

fn portfolio_row(code: &str, quantity: &str, average: &str, tick: &Tick) -> Value {
    let close = rupees(tick.previous_close);
    let percent = (rupees(tick.last) - close) * rust_decimal::Decimal::ONE_HUNDRED / close;
    json!({
        "stock_code": code, "exchange_code": "NSE", "quantity": quantity,
        "average_price": average, "booked_profit_loss": "0",
        "current_market_price": rupees(tick.last).normalize().to_string(),
        "change_percentage": percent.round_dp(2).to_string(), "answer_flag": "N",
        "product_type": null, "expiry_date": null, "strike_price": null, "right": null,
        "category_index_per_stock": null, "action": null, "realized_profit": null,
        "unrealized_profit": null, "open_position_value": null, "portfolio_charges": null,
    })
}

fn portfolio_positions(call: &Call<'_>, login: &Login) -> Answer {
    if call.world.settings.broker_b.empty_account {
        return nothing("".into());
    }
    if let Some(set) = call.world.accounts.lock().positions_b(&login.user_id) {
        return success(Value::Array(set.net));
    }
    let rows = held(call.world, &login.user_id)
        .into_iter()
        .take(2)
        .enumerate();
    let rows = rows.map(|(number, held)| {
        let tick = call.tick(held.instrument);
        let (action, quantity) = if number == 0 {
            ("NA", "0")
        } else {
            ("Buy", "5")
        };
        let close = rupees(tick.previous_close);
        let last = rupees(tick.last).to_string();
        json!({
            "segment": "equity", "product_type": "Cash", "exchange_code": "NSE",
            "stock_code": held.instrument.short_code, "action": action, "quantity": quantity,
            "average_price": close.to_string(), "ltp": last, "price": last,
            "expiry_date": null, "strike_price": null, "right": null,
            "stock_index_indicator": null, "cover_quantity": null, "stoploss_trigger": null,
            "order_id": null, "underlying": null, "settlement_id": null, "margin_amount": null,
            "stoploss": null, "take_profit": null, "available_margin": null,
            "squareoff_mode": null, "mtf_sell_quantity": null, "mtf_net_amount_payable": null,
            "mtf_expiry_date": null, "cover_order_flow": null,
            "cover_order_executed_quantity": null, "pledge_status": null, "pnl": null,
            "order_segment_code": null,
        })
    });
    success(Value::Array(rows.collect()))
}

#[cfg(test)]
#[path = "broker_b_tests.rs"]
mod tests;
