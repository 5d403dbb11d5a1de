//! The declarations.

/// A table: a struct whose fields are keys, each with its meaning, type, default and range.
///
/// `pub struct Name: Derive as "Definition" { /// meaning⏎ key: Type as Written = default, in range; … }`: the name of
/// the definition in the schema, a further derive if there is one. A key without default is required; without
/// required keys the struct has a `Default`. `as Written` names another type by which the value is written, like
/// `limit: u64 as Packets`; `items range` bounds the length of a list. `checked by function` after the definition names
/// the function that checks values that depend on each other, `fn(&Self) -> Result<(), Error>`. With `| key` after the
/// definition, that key's value alone stands for a table with this key only. `over function` before that returns the
/// values of keys that a table does not have, `fn(&Map<String, Json>, &mut Files) -> Result<Self, Error>`; they may
/// depend on the table.
///
/// After the keys, `with { /// meaning⏎ field: Table = values; … }` has other tables whose keys are keys of this one,
/// with these values as their defaults, or without `= values` with the table's own, and
/// `beside { /// meaning⏎ field: Type = value; … }` has fields that only code sets.
///
/// With `, const` after the definition the struct also has a constant `DEFAULT`, for which all defaults are constants.
#[macro_export]
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(: $derive:ident)? as $definition:literal, const {
            $($(#[doc = $doc:literal])*
            $field:ident: $ty:ty $(as $repr:ty)? = $default:expr $(, in $range:expr)?;)*
        }
        $(with { $($(#[doc = $wdoc:literal])* $wfield:ident: $wty:ty = $wvalue:expr;)* })?
    ) => {
        $crate::settings! { @table
            $(#[doc = $about])*
            $vis struct $name $(: $derive)? as $definition {
                $($(#[doc = $doc])* $field: $ty $(as $repr)? = $default $(, in $range)?;)*
            }
            $(with { $($(#[doc = $wdoc])* $wfield: $wty = $wvalue;)* })?
        }
        impl $name {
            /// The default values of all keys.
            pub const DEFAULT: Self = Self {
                $($field: $default,)*
                $($($wfield: $wvalue,)*)?
            };
        }
        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(: $derive:ident)? as $definition:literal $(| $short:ident)?
        $(, over $usual:path)? $(, checked by $check:path)? {
            $($(#[doc = $doc:literal])*
            $field:ident: $ty:ty $(as $repr:ty)? = $default:expr $(, in $range:expr)? $(, items $items:expr)?;)*
        }
        $(with { $($(#[doc = $wdoc:literal])* $wfield:ident: $wty:ty $(= $wvalue:expr)?;)* })?
        $(beside { $($(#[doc = $bdoc:literal])* $bfield:ident: $bty:ty = $bvalue:expr;)* })?
    ) => {
        $crate::settings! { @table
            $(#[doc = $about])*
            $vis struct $name $(: $derive)? as $definition $(| $short)? $(, over $usual)? $(, checked by $check)? {
                $($(#[doc = $doc])* $field: $ty $(as $repr)? = $default $(, in $range)? $(, items $items)?;)*
            }
            $(with { $($(#[doc = $wdoc])* $wfield: $wty $(= $wvalue)?;)* })?
            $(beside { $($(#[doc = $bdoc])* $bfield: $bty = $bvalue;)* })?
        }
        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($wfield: $crate::__usual!($wty $(, $wvalue)?),)*)?
                    $($($bfield: $bvalue,)*)?
                }
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(: $derive:ident)? as $definition:literal $(| $short:ident)?
        $(, checked by $check:path)? { $($fields:tt)* }
    ) => {
        $crate::settings! { @table
            $(#[doc = $about])*
            $vis struct $name $(: $derive)? as $definition $(| $short)? $(, checked by $check)? { $($fields)* }
        }
    };
    (
        @table $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(: $derive:ident)? as $definition:literal $(| $short:ident)?
        $(, over $usual:path)? $(, checked by $check:path)? {
            $($(#[doc = $doc:literal])*
            $field:ident: $ty:ty $(as $repr:ty)? $(= $default:expr)? $(, in $range:expr)? $(, items $items:expr)?;)*
        }
        $(with { $($(#[doc = $wdoc:literal])* $wfield:ident: $wty:ty $(= $wvalue:expr)?;)* })?
        $(beside { $($(#[doc = $bdoc:literal])* $bfield:ident: $bty:ty = $bvalue:expr;)* })?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $ty,)*
            $($($(#[doc = $wdoc])* pub $wfield: $wty,)*)?
            $($($(#[doc = $bdoc])* pub $bfield: $bty,)*)?
        }

        #[allow(unused_variables)]
        impl $crate::support::Keyed for $name {
            fn describe(table: &mut $crate::support::Table, schemas: &mut $crate::Schemas) {
                $($crate::support::Field::<$ty, $crate::__written!($ty $(, $repr)?)>::new(stringify!($field))
                    $(.within($range))? $(.items($items))? $(.or(|| $default))?
                    .describe(table, concat!($($doc, "\n"),*), schemas);)*
                $($(<$wty as $crate::support::Keyed>::describe(table, schemas);
                    $(table.usual(&$wvalue);)?)*)?
            }
            fn keys() -> Vec<&'static str> {
                #[allow(unused_mut)]
                let mut all: Vec<&'static str> = vec![$(stringify!($field)),*];
                $($(all.extend(<$wty as $crate::support::Keyed>::keys());)*)?
                all
            }
            fn take(
                table: &$crate::support::Map<String, $crate::Json>,
                files: &mut $crate::Files,
            ) -> Result<Self, $crate::Error> {
                $(let usual: Self = $usual(table, files)?;
                let table = &$crate::support::overlay(&$crate::Setting::write(&usual), table);)?
                let this = Self {
                    $($field: $crate::support::Field::<$ty, $crate::__written!($ty $(, $repr)?)>::new(
                        stringify!($field)) $(.within($range))? $(.items($items))?
                        $(.or(|| $default))?.read(table, files)?,)*
                    $($($wfield: <$wty as $crate::support::Keyed>::take(
                        $crate::__over!(table $(, $wvalue)?), files)?,)*)?
                    $($($bfield: $bvalue,)*)?
                };
                $($check(&this)?;)?
                Ok(this)
            }
            fn put(&self, out: &mut $crate::support::Map<String, $crate::Json>) {
                $($crate::support::Field::<$ty, $crate::__written!($ty $(, $repr)?)>::new(stringify!($field))
                    .write(&self.$field, out);)*
                $($($crate::support::Keyed::put(&self.$wfield, out);)*)?
            }
        }

        impl $crate::Setting for $name {
            fn schema(schemas: &mut $crate::Schemas) -> $crate::Json {
                let table = schemas.define($definition, |schemas| {
                    let mut table = $crate::support::Table::new(concat!($($about, "\n"),*));
                    <Self as $crate::support::Keyed>::describe(&mut table, schemas);
                    table.schema()
                });
                $(let table = $crate::support::short(&table, stringify!($short), schemas);)?
                table
            }
            fn read(
                json: &$crate::Json,
                files: &mut $crate::Files,
            ) -> Result<Self, $crate::Error> {
                $(let lengthened = $crate::support::lengthen(json, stringify!($short));
                let json = lengthened.as_ref().unwrap_or(json);)?
                let keys = <Self as $crate::support::Keyed>::keys();
                <Self as $crate::support::Keyed>::take($crate::support::keys(json, &keys)?, files)
            }
            fn check(&self) -> Result<(), $crate::Error> {
                $($crate::support::Field::<$ty, $crate::__written!($ty $(, $repr)?)>::new(stringify!($field))
                    $(.within($range))?.check(&self.$field)?;)*
                $($($crate::Setting::check(&self.$wfield)?;)*)?
                $($check(self)?;)?
                Ok(())
            }
            fn write(&self) -> $crate::Json {
                let mut out = $crate::support::Map::new();
                $crate::support::Keyed::put(self, &mut out);
                out.into()
            }
        }
    };
}

/// Lets a value be written as a [`Switch`](crate::Switch): type, what `false` is, what `true` is.
#[macro_export]
macro_rules! switch {
    ($ty:ty, $off:expr, $on:expr) => {
        impl From<$ty> for $crate::Switch<$ty> {
            fn from(value: $ty) -> Self {
                Self::To(value)
            }
        }
        impl From<$crate::Switch<$ty>> for $ty {
            fn from(switch: $crate::Switch<$ty>) -> Self {
                match switch {
                    $crate::Switch::Off => $off,
                    $crate::Switch::On => $on,
                    $crate::Switch::To(value) => value,
                }
            }
        }
    };
}

/// The default of a table inside of another.
#[doc(hidden)]
#[macro_export]
macro_rules! __usual {
    ($ty:ty) => {
        <$ty>::default()
    };
    ($ty:ty, $value:expr) => {
        $value
    };
}

/// What a table inside of another is read from.
#[doc(hidden)]
#[macro_export]
macro_rules! __over {
    ($table:ident) => {
        $table
    };
    ($table:ident, $value:expr) => {
        &$crate::support::overlay(&$crate::Setting::write(&$value), $table)
    };
}

/// The type by which a value is written.
#[doc(hidden)]
#[macro_export]
macro_rules! __written {
    ($ty:ty) => {
        $ty
    };
    ($ty:ty, $repr:ty) => {
        $repr
    };
}

/// A choice among names: an enum without content.
#[macro_export]
macro_rules! names {
    (
        $(#[doc = $about:literal])*
        pub enum $name:ident {
            $($(#[doc = $doc:literal])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Every name, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// The name by which it is written in a scenario.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl $crate::Setting for $name {
            fn schema(_: &mut $crate::Schemas) -> $crate::Json {
                $crate::support::one_of("", vec![
                    $($crate::support::word($text, concat!($($doc, "\n"),*)),)*
                ])
            }
            fn read(json: &$crate::Json, _: &mut $crate::Files) -> Result<Self, $crate::Error> {
                match json.as_str() {
                    $(Some($text) => Ok(Self::$variant),)*
                    _ => Err($crate::support::unknown(json, Self::NAMES)),
                }
            }
            fn write(&self) -> $crate::Json {
                self.name().into()
            }
        }
    };
}

/// A choice among kinds of values, each a variant of an enum; the definition in the schema has its tables:
///
/// - `words { "unlimited" => Unlimited; }`: a word;
/// - `plain { Constant(Rate); }`: a value of this type as it is; `"key" => Constant(Rate)`: or as a table of one key;
/// - `open { "window" => Window(Factors); }`: this table as it is, or the word alone for its default;
/// - `named { "red" => Red(Red); }`: a table of one key with the content, or the word alone for its default;
/// - `tables { "steps" => Steps(Vec<(Instant, Rate)>); }`: a table of one key with the content.
///
/// Sections are optional and in this order; `Variant(Type as Written)` as in [`settings!`].
#[macro_export]
macro_rules! kinds {
    (
        $(#[doc = $about:literal])*
        pub enum $name:ident $(: $derive:ident)? as $definition:literal $(, checked by $check:path)? {
            $(words { $($(#[doc = $wdoc:literal])* $word:literal => $wvariant:ident;)* })?
            $(plain { $($(#[doc = $pdoc:literal])* $($pkey:literal =>)? $pvariant:ident($pty:ty $(as $prepr:ty)?);)* })?
            $(open { $($(#[doc = $odoc:literal])* $okey:literal => $ovariant:ident($oty:ty);)* })?
            $(named { $($(#[doc = $ndoc:literal])* $nkey:literal => $nvariant:ident($nty:ty);)* })?
            $(tables { $($(#[doc = $tdoc:literal])* $tkey:literal => $tvariant:ident($tty:ty $(as $trepr:ty)?);)* })?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        pub enum $name {
            $($($(#[doc = $wdoc])* $wvariant,)*)?
            $($($(#[doc = $pdoc])* $pvariant($pty),)*)?
            $($($(#[doc = $odoc])* $ovariant($oty),)*)?
            $($($(#[doc = $ndoc])* $nvariant($nty),)*)?
            $($($(#[doc = $tdoc])* $tvariant($tty),)*)?
        }

        impl $name {
            /// The words and keys of all kinds, in the order of declaration.
            pub const KINDS: &'static [&'static str] = &[
                $($($word,)*)? $($($($pkey,)?)*)? $($($okey,)*)? $($($nkey,)*)? $($($tkey,)*)?
            ];

            /// The word or key of this kind; empty for a plain value.
            #[allow(clippy::match_same_arms, unreachable_patterns)]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $($(Self::$wvariant => $word,)*)?
                    $($(Self::$ovariant(_) => $okey,)*)?
                    $($(Self::$nvariant(_) => $nkey,)*)?
                    $($(Self::$tvariant(_) => $tkey,)*)?
                    _ => "",
                }
            }

            #[allow(unused_variables, unreachable_code)]
            fn parse(
                json: &$crate::Json,
                files: &mut $crate::Files,
            ) -> Result<Self, $crate::Error> {
                match $crate::support::Shape::of(json) {
                    $($($crate::support::Shape::Word($word) => return Ok(Self::$wvariant),)*)?
                    $($($crate::support::Shape::Word($okey) => return Ok(Self::$ovariant(<$oty>::default())),)*)?
                    $($($crate::support::Shape::Word($nkey) => return Ok(Self::$nvariant(<$nty>::default())),)*)?
                    $($($crate::support::Shape::Tagged($nkey, content) => {
                        let content = <$nty as $crate::Setting>::read(content, files);
                        return content.map(Self::$nvariant).map_err(|e| e.at($nkey));
                    })*)?
                    $($($crate::support::Shape::Tagged($tkey, content) => {
                        let content = $crate::support::convert::<$tty, $crate::__written!($tty $(, $trepr)?)>(
                            content, files);
                        return content.map(Self::$tvariant).map_err(|e| e.at($tkey));
                    })*)?
                    _ => {}
                }
                $($(if let Some((key, content)) = $crate::support::content(json, &[$($pkey)?]) {
                    return $crate::support::convert::<$pty, $crate::__written!($pty $(, $prepr)?)>(content, files)
                        .map(Self::$pvariant).map_err(|e| e.at(key));
                })*)?
                $($(if !json.is_object() {
                    return $crate::support::convert::<$pty, $crate::__written!($pty $(, $prepr)?)>(json, files)
                        .map(Self::$pvariant);
                })*)?
                $($(if json.is_object() {
                    return <$oty as $crate::Setting>::read(json, files).map(Self::$ovariant);
                })*)?
                Err($crate::support::unknown(json, Self::KINDS))
            }
        }

        impl $crate::Setting for $name {
            fn schema(schemas: &mut $crate::Schemas) -> $crate::Json {
                let tables = schemas.define($definition, |schemas| {
                    let mut all = Vec::new();
                    $($(all.extend($crate::support::maybe_tagged::<$crate::__written!($pty $(, $prepr)?)>(
                        &[$($pkey)?], concat!($($pdoc, "\n"),*), schemas));)*)?
                    $($(all.push(<$oty as $crate::Setting>::schema(schemas));)*)?
                    $($(all.push($crate::support::tagged::<$nty>($nkey, concat!($($ndoc, "\n"),*), schemas));)*)?
                    $($(all.push($crate::support::tagged::<$crate::__written!($tty $(, $trepr)?)>(
                        $tkey, concat!($($tdoc, "\n"),*), schemas));)*)?
                    $crate::support::one_of(concat!($($about, "\n"),*), all)
                });
                $crate::support::any_of(vec![
                    $($($crate::support::word($word, concat!($($wdoc, "\n"),*)),)*)?
                    $($(<$crate::__written!($pty $(, $prepr)?) as $crate::Setting>::schema(schemas),)*)?
                    $($($crate::support::word($okey, concat!($($odoc, "\n"),*)),)*)?
                    $($($crate::support::word($nkey, concat!($($ndoc, "\n"),*)),)*)?
                ], tables, schemas)
            }
            fn read(
                json: &$crate::Json,
                files: &mut $crate::Files,
            ) -> Result<Self, $crate::Error> {
                let this = Self::parse(json, files)?;
                $($check(&this)?;)?
                Ok(this)
            }
            fn check(&self) -> Result<(), $crate::Error> {
                match self {
                    $($(Self::$wvariant => {})*)?
                    $($(Self::$pvariant(x) => {
                        $crate::support::check::<$pty, $crate::__written!($pty $(, $prepr)?)>(x, "")?;
                    })*)?
                    $($(Self::$ovariant(x) => $crate::support::check::<$oty, $oty>(x, "")?,)*)?
                    $($(Self::$nvariant(x) => $crate::support::check::<$nty, $nty>(x, $nkey)?,)*)?
                    $($(Self::$tvariant(x) => {
                        $crate::support::check::<$tty, $crate::__written!($tty $(, $trepr)?)>(x, $tkey)?;
                    })*)?
                }
                $($check(self)?;)?
                Ok(())
            }
            fn write(&self) -> $crate::Json {
                match self {
                    $($(Self::$wvariant => $word.into(),)*)?
                    $($(Self::$pvariant(x) => {
                        $crate::support::written::<$pty, $crate::__written!($pty $(, $prepr)?)>(x)
                    })*)?
                    $($(Self::$ovariant(x) => $crate::Setting::write(x),)*)?
                    $($(Self::$nvariant(x) => $crate::support::tag($nkey, $crate::Setting::write(x)),)*)?
                    $($(Self::$tvariant(x) => $crate::support::tag(
                        $tkey, $crate::support::written::<$tty, $crate::__written!($tty $(, $trepr)?)>(x)),)*)?
                }
            }
        }
    };
}
