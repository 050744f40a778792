//! Which executions an order's average stands for.
//!
//! Broker B's API gives one row an order with its average price, and its files give the executions.
//! An order is the executions whose quantity is its own and whose value is its own to a rupee.

use rust_decimal::Decimal;

/// Most executions of a day and side among which a part is searched: a thousand sets. More are
/// compared as a whole.
const SEARCHED_MAX: usize = 10;

/// Quantity and price of an execution, or of an order on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub order_id: Option<&'a str>,
    pub quantity: Decimal,
    pub price: Decimal,
}

/// Executions among those left that may be an order.
type Search<'a> = &'a dyn Fn(&Execution<'_>, &[usize]) -> Vec<usize>;

/// For each order of one security, date and side the executions that it is, as indices: none if it
/// is not among them. Each execution belongs to one order at most.
pub(crate) fn parts(orders: &[Execution<'_>], executions: &[Execution<'_>]) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); orders.len()];
    let mut left: Vec<usize> = (0..executions.len()).collect();
    let matches = |order: &Execution<'_>, part: &[usize]| {
        !part.is_empty() && is_same(std::slice::from_ref(order), &picked(executions, part))
    };
    let searches: [Search<'_>; 4] = [
        &|order, left| {
            let same =
                |at: &usize| order.order_id.is_some() && executions[*at].order_id == order.order_id;
            left.iter().copied().filter(same).collect()
        },
        &|order, left| {
            left.iter()
                .copied()
                .find(|at| matches(order, &[*at]))
                .into_iter()
                .collect()
        },
        &|_, left| left.to_vec(),
        &|order, left| subset(order, left, executions),
    ];
    for search in searches {
        for (order, part) in orders.iter().zip(&mut parts) {
            if !part.is_empty() {
                continue;
            }
            let candidate = search(order, &left);
            if matches(order, &candidate) {
                left.retain(|at| !candidate.contains(at));
                *part = candidate;
            }
        }
    }
    // What cannot be told apart may still be the same together.
    let open: Vec<usize> = (0..orders.len())
        .filter(|at| parts[*at].is_empty())
        .collect();
    if !left.is_empty() && is_same(&picked(orders, &open), &picked(executions, &left)) {
        for at in open {
            parts[at].clone_from(&left);
        }
    }
    parts
}

fn picked<'a>(of: &[Execution<'a>], places: &[usize]) -> Vec<Execution<'a>> {
    places.iter().map(|at| of[*at]).collect()
}

/// Whether quantities are equal and values differ by a rupee at most.
fn is_same(orders: &[Execution<'_>], executions: &[Execution<'_>]) -> bool {
    let sums = |all: &[Execution<'_>]| {
        let zero = (Decimal::ZERO, Decimal::ZERO);
        all.iter().try_fold(zero, |(quantity, value), one| {
            let more = one.quantity.checked_mul(one.price)?;
            Some((quantity.checked_add(one.quantity)?, value.checked_add(more)?))
        })
    };
    sums(orders)
        .zip(sums(executions))
        .is_some_and(|(orders, executions)| {
            orders.0 == executions.0 && (orders.1 - executions.1).abs() <= Decimal::ONE
        })
}

/// The first part of a few executions that is the order.
fn subset(order: &Execution<'_>, left: &[usize], executions: &[Execution<'_>]) -> Vec<usize> {
    if left.len() > SEARCHED_MAX {
        return Vec::new();
    }
    (1_u32..1 << left.len())
        .map(|chosen| {
            let is_chosen = |place: &usize| chosen >> place & 1 == 1;
            (0..left.len())
                .filter(is_chosen)
                .map(|place| left[place])
                .collect::<Vec<usize>>()
        })
        .find(|part| is_same(std::slice::from_ref(order), &picked(executions, part)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(quantity: i64, price: &str, order_id: Option<&'static str>) -> Execution<'static> {
        Execution {
            order_id,
            quantity: quantity.into(),
            price: price.parse().unwrap(),
        }
    }

    /// The parts of orders among executions without order ids.
    fn found(orders: &[(i64, &str)], executions: &[(i64, &str)]) -> Vec<Vec<usize>> {
        let plain = |all: &[(i64, &str)]| -> Vec<Execution<'static>> {
            all.iter()
                .map(|(quantity, price)| execution(*quantity, price, None))
                .collect()
        };
        parts(&plain(orders), &plain(executions))
    }

    #[test]
    fn an_order_is_its_executions_where_quantity_and_value_agree() {
        // 10 × 100 + 5 × 101 is 15 × 100.33 to five paise.
        assert_eq!(found(&[(15, "100.33")], &[(10, "100"), (5, "101")]), [vec![0, 1]]);
        assert_eq!(found(&[(15, "100.40")], &[(10, "100"), (5, "101")]), [vec![0, 1]]);
        let none: [Vec<usize>; 1] = [Vec::new()];
        assert_eq!(found(&[(15, "100.4001")], &[(10, "100"), (5, "101")]), none);
        assert_eq!(found(&[(16, "100.33")], &[(10, "100"), (5, "101")]), none);
        assert_eq!(found(&[(15, "100.33")], &[]), none);
    }

    #[test]
    fn orders_of_one_day_take_the_executions_that_fit_each() {
        let executions = [(10, "100"), (7, "102"), (5, "101"), (7, "90")];
        assert_eq!(found(&[(15, "100.33"), (7, "90")], &executions), [vec![0, 2], vec![3]]);
        assert_eq!(found(&[(7, "102"), (22, "97.05")], &executions), [vec![1], vec![0, 2, 3]]);
        // Each order alone fits none, and all fit together.
        let all = found(&[(1, "10"), (3, "12")], &[(2, "11"), (2, "12")]);
        assert_eq!(all, [vec![0, 1], vec![0, 1]]);
    }

    #[test]
    fn the_order_id_decides_before_figures_do() {
        let executions = [
            execution(5, "100", Some("1")),
            execution(5, "100", Some("2")),
        ];
        let orders = [
            execution(5, "100", Some("2")),
            execution(5, "100", Some("1")),
        ];
        assert_eq!(parts(&orders, &executions), [vec![1], vec![0]]);
    }
}
