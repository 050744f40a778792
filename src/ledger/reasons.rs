//! Why a gain is not proved: what cuts all sales of a security, a part alone, or gains alone.

use crate::base::words::words;

words! {
    /// Why something is left out.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Reason {
        /// The account has never been synced.
        NeverSynced = "never_synced",
        /// The broker has another quantity.
        QuantityDiffers = "quantity_differs",
        /// Sold without a purchase.
        Uncovered = "uncovered",
        /// Two rows with one id differ.
        Conflict = "conflict",
        IsinUnknown = "isin_unknown",
        /// Something happened to the security that is never computed.
        ActionUnproved = "action_unproved",
        /// A loss beside a bonus, which the law ignores.
        BonusStripping = "bonus_stripping",
        /// The sale is later than the sync, or the sync may not show it yet.
        NotYetSynced = "not_yet_synced",
        /// Bought before February 2018, and no price of 31 January 2018 is known.
        FmvMissing = "fmv_missing",
        /// That price of a share which a merger or demerger gave, or of a gift that was not listed.
        FmvCarried = "fmv_carried",
        /// Two corrections say different prices of 31 January 2018.
        FmvDiffers = "fmv_differs",
        /// Sold without securities transaction tax.
        SttOnSale = "stt_on_sale",
        /// Bought without securities transaction tax.
        SttOnPurchase = "stt_on_purchase",
        /// No rule of that date is known.
        RuleUnknown = "rule_unknown",
        /// A contract that expired and has no closing row.
        FnoExpired = "fno_expired",
        /// Only the broker's report says it.
        Stated = "stated",
        ClassFund = "class_fund",
        ClassBond = "class_bond",
        ClassTrust = "class_trust",
        ClassEntitlement = "class_entitlement",
        ClassGovernment = "class_government",
        ClassOther = "class_other",
        /// Partly paid shares, or shares with other voting rights.
        DifferentRights = "different_rights",
    }

    /// What made the ledger and the broker differ, as far as it shows.
    pub(crate) enum Cause {
        Bonus = "bonus",
        Split = "split",
        /// Also an allotment, an employer's plan, or the delivery of a contract of derivatives.
        TransferIn = "transfer_in",
        /// A sale of what was bought before the first file.
        OlderFile = "older_file",
        TransferOut = "transfer_out",
        /// A time without any trade, of which a file may be missing.
        MissingFile = "missing_file",
        Conflict = "conflict",
        /// The security of a symbol is not known.
        Symbol = "symbol",
    }
}

impl Reason {
    /// Whether it cuts all sales of the account's security, of every year. Returns leave such a
    /// security out.
    pub(crate) fn cuts_security(self) -> bool {
        self <= Self::BonusStripping
    }

    /// Whether it is because of the kind of security that it is.
    pub(crate) fn is_of_class(self) -> bool {
        self >= Self::ClassFund
    }
}
