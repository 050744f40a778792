//! What the OpenAPI description says of the operations on broker tokens and on the service itself.

use super::operations::Operation;
use super::refusals::{
    ACTIVATION_BAD_GATEWAY, ACTIVATION_FORBIDDEN, ACTIVATION_UNAVAILABLE, BODY_INVALID,
    BROKER_LIMITED, BROKER_NOT_READY, BROKER_TIMEOUT, CODE_REFUSED, NOT_THE_ADMINISTRATOR, own,
};
use crate::http::Method::{Get, Post};

/// After those of `operations.rs`, in the order of the document.
pub(super) const SERVICE_OPERATIONS: &[Operation] = &[
    Operation {
        route: (Get, "/brokera/status"),
        id: "readBrokerAStatus",
        tag: "tokens",
        description: "\
            Whether the server's shared token is set and valid, and until when. Validity follows \
            the broker's own rule and turns false as soon as the broker refuses the token.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The state at this moment.",
        reply: (200, "BrokerAStatus"),
        headers: &["ETag"],
        refusals: &[],
    },
    Operation {
        route: (Get, "/brokerb/status"),
        id: "readBrokerBStatus",
        tag: "tokens",
        description: "\
            Whether the server's shared session is set and valid, and until when. Validity \
            follows the broker's own rule and turns false as soon as the broker refuses the \
            session.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The state at this moment.",
        reply: (200, "BrokerBStatus"),
        headers: &["ETag"],
        refusals: &[],
    },
    Operation {
        route: (Post, "/brokera/activate"),
        id: "activateBrokerA",
        tag: "tokens",
        description: "\
            For the administrator: whoever sends the secret that the operator has configured. \
            Without a configured secret, only a program that calls directly from the server's own \
            machine.",
        parameters: &[],
        body: Some("ActivationA"),
        success: "The new state.",
        reply: (200, "BrokerAStatus"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            CODE_REFUSED,
            ACTIVATION_FORBIDDEN,
            BROKER_NOT_READY,
            BROKER_LIMITED,
            ACTIVATION_BAD_GATEWAY,
            ACTIVATION_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Post, "/brokerb/activate"),
        id: "activateBrokerB",
        tag: "tokens",
        description: "\
            For the administrator: whoever sends the secret that the operator has configured. \
            Without a configured secret, only a program that calls directly from the server's own \
            machine.",
        parameters: &[],
        body: Some("ActivationB"),
        success: "The new state.",
        reply: (200, "BrokerBStatus"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            CODE_REFUSED,
            NOT_THE_ADMINISTRATOR,
            BROKER_NOT_READY,
            BROKER_LIMITED,
            ACTIVATION_BAD_GATEWAY,
            ACTIVATION_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Get, "/api/health"),
        id: "readHealth",
        tag: "system",
        description: "\
            State of the database, caches and warmers as last probed, at most a few seconds ago. \
            This route never waits for a part that is broken.",
        parameters: &[],
        body: None,
        success: "`ok` or `degraded`.",
        reply: (200, "Health"),
        headers: &[],
        refusals: &[own(503, &["starting"])],
    },
    Operation {
        route: (Get, "/api/openapi.json"),
        id: "readDocument",
        tag: "system",
        description: "The OpenAPI 3.1 description of this version of the API.",
        parameters: &["IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "The document.",
        reply: (200, "Document"),
        headers: &["ETag", "Vary"],
        refusals: &[],
    },
];
