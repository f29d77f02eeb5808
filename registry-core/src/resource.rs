//! What the host provides to tools: a client, an index, a database, by its type.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::Arc,
};

/// Something the host provides, as a tool's parameter. A tool that asks for one is enabled only where it is there;
/// `Option<Resource<T>>` takes it where it is there and does not decide.
#[derive(Debug)]
pub struct Resource<T: ?Sized>(Arc<T>);

impl<T> Resource<T> {
    /// A resource outside of a registry, as for a unit test that calls a tool's function.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Clone for Resource<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Resource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// All that the host provides, at most one of each type.
#[derive(Default, Clone)]
pub struct Resources {
    present: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    absent: HashMap<TypeId, String>,
}

impl Resources {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides a value to the tools that ask for its type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.insert(Arc::new(value));
        self
    }

    /// Provides a value that the host keeps using itself.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.present.insert(TypeId::of::<T>(), value);
    }

    /// Says how to get what is not provided, for listings: `set [search] in toolrack.toml`.
    pub fn explain_absence<T: 'static>(&mut self, how: impl Into<String>) {
        self.absent.insert(TypeId::of::<T>(), how.into());
    }

    /// The value of a type, where the host provides one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Resource<T>> {
        let value = Arc::clone(self.present.get(&TypeId::of::<T>())?);
        value.downcast().ok().map(Resource)
    }

    /// `None` where the type is provided, otherwise why a tool that needs it is off.
    pub fn missing<T: Send + Sync + 'static>(&self) -> Option<String> {
        if self.present.contains_key(&TypeId::of::<T>()) {
            return None;
        }
        let name = type_name::<T>();
        let short = name.rsplit("::").next().unwrap_or(name);
        Some(match self.absent.get(&TypeId::of::<T>()) {
            Some(how) => format!("needs {short}: {how}"),
            None => format!("needs {short}, which this host does not provide"),
        })
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources").field("present", &self.present.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_type() {
        let resources = Resources::new().with(7_u32).with("text");
        assert_eq!(*resources.get::<u32>().unwrap(), 7);
        assert_eq!(*resources.get::<&str>().unwrap(), "text");
        assert!(resources.get::<u64>().is_none());
    }

    #[test]
    fn absence_says_how_to_end_it() {
        let mut resources = Resources::new().with(7_u32);
        assert_eq!(resources.missing::<u32>(), None);
        assert_eq!(resources.missing::<String>().unwrap(), "needs String, which this host does not provide");
        resources.explain_absence::<String>("set `name`");
        assert_eq!(resources.missing::<String>().unwrap(), "needs String: set `name`");
    }
}
