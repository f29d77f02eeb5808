//! What the host provides to tools: a client, an index, a database, by its type.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::Arc,
};

use crate::context::ToolContext;

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
    present: HashMap<TypeId, Provided>,
    absent: HashMap<TypeId, String>,
}

/// Why a value is not to be had by a request; `None` where it is.
type Condition = dyn Fn(&ToolContext) -> Option<String> + Send + Sync;

#[derive(Clone)]
struct Provided {
    value: Arc<dyn Any + Send + Sync>,
    condition: Option<Arc<Condition>>,
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
        self.present.insert(TypeId::of::<T>(), Provided { value, condition: None });
    }

    /// Provides a value to the requests for which `missing` is `None`; for the others it says why not, and the tools that need the value
    /// are off. It is asked for every request, once for each tool, so it has to be quick.
    pub fn insert_where<T: Send + Sync + 'static>(
        &mut self,
        value: Arc<T>,
        missing: impl Fn(&T, &ToolContext) -> Option<String> + Send + Sync + 'static,
    ) {
        let asked = Arc::clone(&value);
        let condition: Arc<Condition> = Arc::new(move |context| missing(&asked, context));
        self.present.insert(TypeId::of::<T>(), Provided { value, condition: Some(condition) });
    }

    /// Says how to get what is not provided, for listings: `set [search] in toolrack.toml`.
    pub fn explain_absence<T: 'static>(&mut self, how: impl Into<String>) {
        self.absent.insert(TypeId::of::<T>(), how.into());
    }

    /// The value of a type, where the host provides one, to whichever requests. Tools ask [`ToolContext::resource`].
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Resource<T>> {
        let value = Arc::clone(&self.present.get(&TypeId::of::<T>())?.value);
        value.downcast().ok().map(Resource)
    }

    /// `None` where the type is provided to that request, otherwise why a tool that needs it is off.
    pub fn missing<T: Send + Sync + 'static>(&self, context: &ToolContext) -> Option<String> {
        let told = match self.present.get(&TypeId::of::<T>()) {
            Some(Provided { condition, .. }) => Some(condition.as_ref()?(context)?),
            None => self.absent.get(&TypeId::of::<T>()).cloned(),
        };
        let name = type_name::<T>();
        let short = name.rsplit("::").next().unwrap_or(name);
        Some(match told {
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{context::Caller, policy::Permission};

    #[test]
    fn a_value_is_found_by_its_type() {
        let resources = Resources::new().with(7_u32).with("text");
        assert_eq!(*resources.get::<u32>().unwrap(), 7);
        assert_eq!(*resources.get::<&str>().unwrap(), "text");
        assert!(resources.get::<u64>().is_none());
    }

    #[test]
    fn absence_says_how_to_end_it() {
        let context = ToolContext::default();
        let mut resources = Resources::new().with(7_u32);
        let missing = |resources: &Resources| resources.missing::<String>(&context);
        assert_eq!(resources.missing::<u32>(&context), None);
        assert_eq!(missing(&resources).unwrap(), "needs String, which this host does not provide");
        resources.explain_absence::<String>("set `name`");
        assert_eq!(missing(&resources).unwrap(), "needs String: set `name`");
    }

    #[test]
    fn p4_a_condition_is_asked_for_each_request() {
        let open = Arc::new(AtomicBool::new(false));
        let mut resources = Resources::new();
        resources.insert_where(Arc::clone(&open), |open, context| {
            let name = &context.caller().user;
            (!open.load(Ordering::SeqCst)).then(|| format!("{name} has to open it"))
        });
        let context = ToolContext::new(Caller::new("ada", Permission::User)).with_resources(resources);
        let missing = || context.resources().missing::<AtomicBool>(&context);
        assert_eq!(missing().unwrap(), "needs AtomicBool: ada has to open it");
        assert!(context.resource::<AtomicBool>().is_none());
        assert!(context.resources().get::<AtomicBool>().is_some());
        open.store(true, Ordering::SeqCst);
        assert_eq!(missing(), None);
        assert!(context.resource::<AtomicBool>().is_some());
    }
}
