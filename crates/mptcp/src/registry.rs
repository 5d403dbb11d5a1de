//! Registries of schedulers and path managers by name.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use gargalo_cc::chosen::Registry;
use gargalo_cc::params::{BuildError, Params};
use gargalo_units::nearest;

use crate::error::UnknownName;

/// The registry entry of a kind of thing.
pub type Entry<T> = gargalo_cc::registry::Entry<fn(&Params) -> Result<Box<T>, BuildError>>;

/// A kind of thing of which this crate has several.
pub trait Kind: 'static {
    /// The word for an entry in messages, like "scheduler".
    const NAME: &'static str;
    /// The same with its article, as a sentence begins.
    const WHAT: &'static str;
    /// Name of the definition in the schema.
    const DEFINITION: &'static str;
    /// All of them, sorted by name.
    const ENTRIES: &'static [Entry<Self>];
    /// The default one.
    const DEFAULT: &'static Entry<Self>;
}

/// The entry of this name.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find<T: Kind + ?Sized>(name: &str) -> Result<&'static Entry<T>, UnknownName> {
    let found = T::ENTRIES.iter().find(|e| e.names().any(|n| n == name));
    found.ok_or_else(|| UnknownName {
        kind: T::NAME,
        name: name.to_owned(),
        nearest: nearest(name, T::ENTRIES.iter().flat_map(Entry::<T>::names)),
    })
}

/// Creates what connections that share a configuration have one each of.
pub trait Factory<T: ?Sized>: Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &str;
    /// A fresh instance.
    fn build(&self) -> Box<T>;
}

/// An entry of the registry with checked parameters.
pub struct Registered<T: Kind + ?Sized> {
    entry: &'static Entry<T>,
    params: Params,
}

impl<T: Kind + ?Sized> Registered<T> {
    /// Looks the name up and checks the parameters.
    ///
    /// # Errors
    /// A sentence about the wrong name or parameter.
    pub fn new(name: &str, params: Params) -> Result<Self, String> {
        let entry = find(name).map_err(|e| e.to_string())?;
        (entry.build)(&params).map_err(|e| e.to_string())?;
        Ok(Self { entry, params })
    }

    /// The default one.
    pub fn standard() -> Self {
        Self {
            entry: T::DEFAULT,
            params: Params::new(),
        }
    }
}

// Derived implementations would require the same traits of `T`.
impl<T: Kind + ?Sized> Clone for Registered<T> {
    fn clone(&self) -> Self {
        Self {
            entry: self.entry,
            params: self.params.clone(),
        }
    }
}

impl<T: Kind + ?Sized> Debug for Registered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("entry", &self.entry.name)
            .field("params", &self.params)
            .finish()
    }
}

impl<T: Kind + ?Sized> Factory<T> for Registered<T> {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn build(&self) -> Box<T> {
        (self.entry.build)(&self.params).expect("the parameters were checked by new")
    }
}

/// The entries of a kind, as settings choose among them.
pub struct Entries<T: ?Sized>(PhantomData<fn() -> Box<T>>);

impl<T: ?Sized> Clone for Entries<T> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<T: ?Sized> PartialEq for Entries<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T: Kind + ?Sized> Debug for Entries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::DEFINITION)
    }
}

impl<T: Kind + ?Sized> Registry for Entries<T> {
    const WHAT: &'static str = T::WHAT;
    const DEFINITION: &'static str = T::DEFINITION;
    const DEFAULT: &'static str = T::DEFAULT.name;

    fn entries() -> Vec<gargalo_cc::registry::Entry<()>> {
        T::ENTRIES.iter().map(Entry::<T>::listed).collect()
    }

    fn check(name: &str, params: &Params) -> Result<(), String> {
        Registered::<T>::new(name, params.clone()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::PathManager;
    use crate::scheduler::Scheduler;

    fn check<T: Kind + ?Sized>() {
        assert!(T::ENTRIES.is_sorted_by_key(|e| e.name));
        for entry in T::ENTRIES {
            assert!((entry.build)(&Params::new()).is_ok(), "{}", entry.name);
            assert_eq!(find::<T>(entry.name).unwrap().name, entry.name);
            assert!((entry.build)(&Params::new().with("nonsense", 1.0)).is_err());
        }
        let standard = Registered::<T>::standard();
        assert_eq!(standard.name(), T::DEFAULT.name);
        assert!(format!("{standard:?}").contains(standard.name()));
        assert_eq!(format!("{:?}", standard.clone()), format!("{standard:?}"));
    }

    #[test]
    fn sorted_built_by_default_and_found() {
        check::<dyn Scheduler>();
        check::<dyn PathManager>();
    }

    #[test]
    fn an_unknown_name_is_answered_by_the_nearest() {
        let scheduler = |name: &str, params| Registered::<dyn Scheduler>::new(name, params);
        let error = scheduler("lowest-latancy", Params::new()).unwrap_err();
        assert_eq!(
            error,
            "there is no scheduler \"lowest-latancy\" (did you mean \"lowest-latency\"?)"
        );
        let params = Params::new().with("segments", 0.0);
        let error = scheduler("round-robin", params).unwrap_err();
        assert!(error.contains("a whole number from 1"), "{error}");
        let error = Registered::<dyn PathManager>::new("fullmesh", Params::new()).unwrap_err();
        assert!(error.contains("full-mesh"), "{error}");
    }
}
