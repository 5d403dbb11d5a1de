//! Declaration of parameters: their types, `params!` and `choices!`.

use std::ops::RangeInclusive;

use gargalo_units::Duration;

use super::{Checked, Param, ParamKind};

/// A type of parameters. It defines the valid values and their text.
pub trait Value: Copy {
    /// What its declaration adds after `in`: a range, or nothing.
    type Valid;
    /// The kind of a parameter with this default.
    fn kind(self, valid: Self::Valid) -> ParamKind;
    /// From a value of that kind; `None` for any other.
    fn from_checked(value: Checked) -> Option<Self>;
}

impl Value for f64 {
    type Valid = RangeInclusive<Self>;
    fn kind(self, valid: Self::Valid) -> ParamKind {
        let (default, (min, max)) = (self, valid.into_inner());
        ParamKind::Number {
            default,
            min,
            max,
            integer: false,
        }
    }
    fn from_checked(value: Checked) -> Option<Self> {
        match value {
            Checked::Number(n) => Some(n),
            _ => None,
        }
    }
}

macro_rules! whole_numbers {
    ($($Int:ty),*) => { $(
        impl Value for $Int {
            type Valid = RangeInclusive<Self>;
            fn kind(self, valid: Self::Valid) -> ParamKind {
                ParamKind::Number {
                    default: self as f64,
                    min: *valid.start() as f64,
                    max: *valid.end() as f64,
                    integer: true,
                }
            }
            fn from_checked(value: Checked) -> Option<Self> {
                f64::from_checked(value).map(|n| n as Self)
            }
        }
    )* };
}
whole_numbers!(u32, u64, usize);

impl Value for bool {
    type Valid = ();
    fn kind(self, (): ()) -> ParamKind {
        ParamKind::Bool { default: self }
    }
    fn from_checked(value: Checked) -> Option<Self> {
        match value {
            Checked::Bool(b) => Some(b),
            _ => None,
        }
    }
}

impl Value for Duration {
    type Valid = RangeInclusive<Self>;
    fn kind(self, valid: Self::Valid) -> ParamKind {
        let (default, (min, max)) = (self, valid.into_inner());
        ParamKind::Duration { default, min, max }
    }
    fn from_checked(value: Checked) -> Option<Self> {
        match value {
            Checked::Duration(d) => Some(d),
            _ => None,
        }
    }
}

/// A field of a [`params!`](crate::params!) struct: one parameter, or another such struct, whose parameters
/// then belong to this one as well.
pub trait Field: Copy {
    /// What its declaration adds after `in`.
    type Valid;
    /// Appends its parameters, with the present values as defaults.
    fn list(self, name: &'static str, doc: &'static str, valid: Self::Valid, all: &mut Vec<Param>);
    /// Takes the value of the parameter `given` if that is this field, named `name`, or one of its fields.
    fn assign(&mut self, name: &str, given: &str, value: Checked);
}

impl<V: Value> Field for V {
    type Valid = V::Valid;
    fn list(self, name: &'static str, doc: &'static str, valid: Self::Valid, all: &mut Vec<Param>) {
        let doc = doc.trim().trim_end_matches('.');
        let kind = self.kind(valid);
        all.push(Param { name, doc, kind });
    }
    fn assign(&mut self, name: &str, given: &str, value: Checked) {
        if name == given
            && let Some(value) = V::from_checked(value)
        {
            *self = value;
        }
    }
}

/// Declares the parameters of an algorithm.
///
/// ```
/// # use gargalo_units::Duration;
/// gargalo_cc::params! {
///     /// Parameters of an example.
///     pub struct ExampleParams {
///         /// Window kept after a loss, as a fraction (RFC 5681: 0.5).
///         beta: f64 = 0.7, in 0.01..=0.99;
///         /// Longest wait.
///         wait: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(1);
///         /// Whether to wait at all.
///         waits: bool = true;
///         /// The parameters that all window-based algorithms have.
///         window: gargalo_cc::WindowParams = gargalo_cc::WindowParams::DEFAULT;
///     }
/// }
/// let given = gargalo_cc::Params::new().with("wait", "20ms");
/// let params = ExampleParams::from_params("example", &given).unwrap();
/// assert_eq!((params.beta, params.wait), (0.7, Duration::from_millis(20)));
/// assert_eq!(ExampleParams::params()[0].doc, "Window kept after a loss, as a fraction (RFC 5681: 0.5)");
/// ```
///
/// The type of a field is a [`Value`]: `f64`, a whole number (`u32`, `u64`, `usize`), `bool`, `Duration` or
/// an enum of [`choices!`](crate::choices!). Numbers and durations need their range. A field whose type was
/// declared by `params!` itself includes the parameters of that struct.
#[macro_export]
macro_rules! params {
    (
        $(#[$about:meta])*
        $vis:vis struct $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $Type:ty = $default:expr $(, in $valid:expr)?;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $Name {
            $($(#[doc = $doc])+ pub $field: $Type,)*
        }

        #[allow(dead_code)] // a struct may be only a part of others
        impl $Name {
            /// The default values of all parameters.
            pub const DEFAULT: Self = Self { $($field: $default,)* };

            /// All parameters in the order of declaration, those of included structs among them.
            pub fn params() -> &'static [$crate::params::Param] {
                static ALL: ::std::sync::LazyLock<Vec<$crate::params::Param>> =
                    ::std::sync::LazyLock::new(|| $crate::params::list($Name::DEFAULT));
                &ALL
            }

            /// The defaults with what was given to `algorithm`.
            ///
            /// # Errors
            /// The first parameter that is unknown, repeated or invalid.
            pub fn from_params(
                algorithm: &'static str,
                given: &$crate::params::Params,
            ) -> Result<Self, $crate::params::BuildError> {
                $crate::params::read(Self::DEFAULT, Self::params(), algorithm, given)
            }
        }

        impl Default for $Name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        #[allow(unused_variables)] // a struct may have no parameters
        impl $crate::params::Field for $Name {
            type Valid = ();
            fn list(
                self,
                _: &'static str,
                _: &'static str,
                (): (),
                all: &mut Vec<$crate::params::Param>,
            ) {
                $($crate::params::Field::list(
                    self.$field,
                    stringify!($field),
                    concat!($($doc),+),
                    ($($valid)?),
                    all,
                );)*
            }
            fn assign(&mut self, _: &str, given: &str, value: $crate::params::Checked) {
                $($crate::params::Field::assign(&mut self.$field, stringify!($field), given, value);)*
            }
        }
    };
}

/// Declares the type of a parameter that takes one of a few names. A variant that holds something is built
/// with its `DEFAULT`.
///
/// ```
/// gargalo_cc::choices! {
///     /// Which round-trip time counts.
///     pub enum Rtt {
///         /// The smoothed one.
///         Smoothed = "smoothed",
///         /// The least one.
///         Least = "least",
///     }
/// }
/// assert_eq!(Rtt::Least.name(), "least");
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$about:meta])*
        $vis:vis enum $Name:ident {
            $(
                $(#[$doc:meta])+
                $Variant:ident $(($Inside:ty))? = $name:literal,
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis enum $Name {
            $($(#[$doc])+ $Variant $(($Inside))?,)+
        }

        impl $Name {
            /// The name that stands for this choice in a scenario.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => $name,)+
                }
            }
        }

        impl $crate::params::Value for $Name {
            type Valid = ();
            fn kind(self, (): ()) -> $crate::params::ParamKind {
                $crate::params::ParamKind::Choice {
                    default: self.name(),
                    choices: &[$($name),+],
                }
            }
            fn from_checked(value: $crate::params::Checked) -> Option<Self> {
                match value {
                    $($crate::params::Checked::Choice($name) => {
                        Some(Self::$Variant $((<$Inside>::DEFAULT))?)
                    })+
                    _ => None,
                }
            }
        }
    };
}

params! {
    /// The parameters of an algorithm that has none.
    pub struct NoParams {}
}

/// The parameters of `default`, with its values as defaults.
pub fn list(default: impl Field<Valid = ()>) -> Vec<Param> {
    let mut all = Vec::new();
    default.list("", "", (), &mut all);
    all
}
