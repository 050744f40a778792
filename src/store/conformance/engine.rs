//! An engine as the suite uses it, and the macro that runs the suite against one.

use crate::store::{Store, UserDirectory};

/// One empty database of an engine, for one test. Dropping the value deletes it.
pub(crate) trait Engine {
    /// Whether the engine is installed here. If not, its tests are left out.
    fn is_there() -> bool {
        true
    }

    fn fresh() -> Self;

    /// Opens the database. It may be opened again once the earlier store is dropped.
    fn open(&self) -> Store;

    /// The operator's view of its users, next to an open store.
    fn users(&self) -> UserDirectory;

    /// Runs a statement as with the engine's own tools, next to an open store.
    fn execute(&self, statement: &str) -> Result<(), String>;
}

/// Makes a test of each function of the suite, for the [`Engine`] of this name.
macro_rules! conformance {
    ($engine:path) => {
        $crate::store::conformance::engine::each! { $engine;
            accounts:
                a_user_is_created_once_changed_and_erased,
                each_account_begins_with_an_epoch_of_its_own,
                ending_all_tokens_gives_a_new_epoch_and_leaves_the_password,
                one_account_is_the_first_of_the_database,
                one_of_several_renews_the_incarnation_that_they_saw,
                the_newest_networks_of_an_account_are_kept_until_it_is_erased;
            api_keys:
                a_key_is_kept_until_it_is_removed_and_each_change_is_told,
                an_account_s_keys_are_bounded;
            changes:
                a_past_with_other_changes_of_the_same_numbers_is_told,
                a_reader_that_was_away_for_long_is_told_that_it_missed_some,
                changes_made_at_once_are_seen_in_order_and_none_is_missed,
                every_change_is_told_once_with_what_it_needs;
            closes:
                a_sync_sees_the_closing_prices_and_writes_the_other_broker_s,
                every_write_of_a_portfolio_makes_another_version,
                held_symbols_come_each_once_and_in_order,
                pages_go_through_those_who_are_not_complete,
                prices_are_kept_until_the_next_run_has_finished,
                a_symbol_without_a_close_opens_a_closed_portfolio,
                rows_points_and_later_points_are_written_where_nothing_came_between;
            journal:
                a_closed_store_takes_nothing_and_keeps_everything,
                a_journal_over_its_bound_may_shrink,
                a_page_of_long_entries_ends_early_and_says_so,
                a_row_no_program_of_ours_wrote_is_said_to_be_damaged,
                the_journal_is_paged_newest_first_and_is_each_user_s_own,
                the_number_of_entries_is_bounded,
                the_text_of_a_journal_is_bounded,
                what_many_writers_at_once_were_told_is_true;
            model: two_users_work_equals_the_model;
            portfolios:
                a_panic_while_deriving_costs_that_sync_alone,
                a_sync_of_nobody_is_refused_and_derives_nothing,
                a_sync_replaces_one_broker_s_rows_exactly_and_in_order,
                deriving_sees_what_stood_before_and_may_mark_what_comes,
                every_kind_of_cost_is_kept_to_the_digit,
                rows_of_another_person_are_refused_unless_that_is_meant,
                the_rows_of_a_sync_are_bounded;
            provisional_signals:
                each_is_kept_once_as_it_was_first_seen,
                the_complete_list_of_the_date_says_what_they_were,
                the_first_outcome_stands_and_nothing_can_be_altered;
            signals:
                a_date_is_published_once_and_its_outcomes_too,
                histories_are_replaced_appended_and_marked,
                what_was_published_cannot_be_altered_by_any_statement;
            users:
                a_disabled_user_changes_no_password_and_each_change_is_told,
                a_new_password_of_a_command_ends_older_tokens,
                users_come_by_pages_in_order_and_are_found_by_either_name;
            watchlists:
                lists_are_replaced_together_and_are_each_account_s_own,
                of_two_who_saw_the_same_lists_one_replaces_them;
        }
    };
}

macro_rules! each {
    ($engine:path; $($part:ident: $($test:ident),+;)+) => {
        $(mod $part {
            $(#[test]
            fn $test() {
                if <$engine as $crate::store::conformance::engine::Engine>::is_there() {
                    $crate::store::conformance::$part::$test::<$engine>();
                }
            })+
        })+
    };
}

pub(crate) use {conformance, each};
