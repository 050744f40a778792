//! Declares a settings struct: each field with its default.

/// A settings struct. `field: Type = default` gives the field, and its value in `Default`.
macro_rules! settings {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $access:vis $field:ident: $kind:ty = $default:expr,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[$doc])* $access $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        #[cfg(test)]
        impl $name {
            /// Name and type of each field.
            #[allow(dead_code, reason = "the simulator's are no settings of the service")]
            pub(crate) const FIELDS: &[(&str, &str)] =
                &[$((stringify!($field), stringify!($kind)),)+];
        }
    };
}

pub(crate) use settings;
