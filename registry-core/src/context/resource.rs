//! What the host provides to tools: a client, an index, a database, by its type.

use std::{
    any::{TypeId, type_name},
    collections::HashMap,
    ops::Deref,
    sync::Arc,
};

use super::ToolContext;
use crate::provide::AnyValue;

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

impl<T> Resource<T> {
    pub(crate) fn into_inner(self) -> Arc<T> {
        self.0
    }
}

impl<T> From<Arc<T>> for Resource<T> {
    fn from(value: Arc<T>) -> Self {
        Self(value)
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
#[derive(Default, Clone, derive_more::Debug)]
#[debug("Resources({} present)", present.len())]
pub struct Resources {
    present: HashMap<TypeId, Provided>,
    absent: HashMap<TypeId, String>,
}

/// What a request gets, or why it gets nothing.
pub(crate) type ByRequest = dyn Fn(&ToolContext) -> Result<AnyValue, String> + Send + Sync;

#[derive(Clone)]
enum Provided {
    /// The same for every request.
    Shared(AnyValue),
    /// Asked for each.
    ByRequest(Arc<ByRequest>),
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
        self.present.insert(TypeId::of::<T>(), Provided::Shared(value));
    }

    /// Provides to each request what `provide` makes for it, such as what belongs to its [tenant](ToolContext::tenant). Where that is an
    /// error, which says why, the tools that need the type are off. It is asked in every listing and once in every call, so it only reads what is
    /// known; what takes time to find out is the work of a task in the background.
    pub fn insert_by_request<T: Send + Sync + 'static>(
        &mut self,
        provide: impl Fn(&ToolContext) -> Result<T, String> + Send + Sync + 'static,
    ) {
        self.insert_any_by_request(
            TypeId::of::<T>(),
            Arc::new(move |context| Ok(Arc::new(provide(context)?))),
        );
    }

    pub(crate) fn insert_any(&mut self, ty: TypeId, value: AnyValue) {
        self.present.insert(ty, Provided::Shared(value));
    }

    pub(crate) fn insert_any_by_request(&mut self, ty: TypeId, provide: Arc<ByRequest>) {
        self.present.insert(ty, Provided::ByRequest(provide));
    }

    /// Says how to get what is not provided, for listings: `set [search] in toolrack.toml`.
    pub fn explain_absence<T: 'static>(&mut self, how: impl Into<String>) {
        self.explain(TypeId::of::<T>(), how.into());
    }

    pub(crate) fn explain(&mut self, ty: TypeId, how: String) {
        self.absent.insert(ty, how);
    }

    /// Whether the host provides a type, to whichever requests.
    pub fn provides<T: 'static>(&self) -> bool {
        self.provides_type(TypeId::of::<T>())
    }

    pub(crate) fn provides_type(&self, ty: TypeId) -> bool {
        self.present.contains_key(&ty)
    }

    /// Whether a type is asked for each request.
    pub(crate) fn differs_by_request<T: 'static>(&self) -> bool {
        self.type_differs_by_request(TypeId::of::<T>())
    }

    pub(crate) fn type_differs_by_request(&self, ty: TypeId) -> bool {
        matches!(self.present.get(&ty), Some(Provided::ByRequest(_)))
    }

    /// The value of a type for a request. Tools ask [`ToolContext::resource`].
    ///
    /// # Errors
    /// Why a tool that needs it is off.
    pub fn get<T: Send + Sync + 'static>(&self, context: &ToolContext) -> Result<Resource<T>, String> {
        let value = match self.present.get(&TypeId::of::<T>()) {
            Some(Provided::Shared(value)) => Ok(Arc::clone(value)),
            Some(Provided::ByRequest(provide)) => provide(context).map_err(Some),
            None => Err(self.absent.get(&TypeId::of::<T>()).cloned()),
        };
        let value = value.and_then(|value| value.downcast().map_err(|_| None));
        value.map(Resource).map_err(Self::absence::<T>)
    }

    /// Why a type is not there, with what the host says of it.
    fn absence<T: 'static>(how: Option<String>) -> String {
        let short = short_name::<T>();
        match how {
            Some(how) => format!("needs {short}: {how}"),
            None => format!(
                "needs {short}, which this host does not provide; a function with `#[resource]` in a file of tools/ provides one"
            ),
        }
    }
}

/// A type's name without its path.
pub(crate) fn short_name<T: 'static>() -> &'static str {
    let name = type_name::<T>();
    // A path within `<…>` is not the type's own.
    let end = name.find('<').unwrap_or(name.len());
    let own = name.get(..end).unwrap_or(name);
    own.rfind("::").and_then(|at| name.get(at + 2..)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{context::Caller, policy::Permission};

    #[test]
    fn a_value_is_found_by_its_type() {
        let (resources, context) = (Resources::new().with(7_u32).with("text"), ToolContext::default());
        assert_eq!(*resources.get::<u32>(&context).unwrap(), 7);
        assert_eq!(*resources.get::<&str>(&context).unwrap(), "text");
        assert!(resources.get::<u64>(&context).is_err());
        assert!(resources.provides::<u32>() && !resources.provides::<u64>());
    }

    #[test]
    fn absence_says_how_to_end_it() {
        let context = ToolContext::default();
        let mut resources = Resources::new().with(7_u32);
        let missing = |resources: &Resources| resources.get::<String>(&context).unwrap_err();
        let how = "a function with `#[resource]` in a file of tools/ provides one";
        assert_eq!(missing(&resources), format!("needs String, which this host does not provide; {how}"));
        resources.explain_absence::<String>("set `name`");
        assert_eq!(missing(&resources), "needs String: set `name`");
    }

    #[test]
    fn p4_each_request_gets_its_own_or_the_reason_why_not() {
        let open = Arc::new(AtomicBool::new(false));
        let mut resources = Resources::new();
        let is_open = Arc::clone(&open);
        resources.insert_by_request(move |context| {
            let name = &context.caller().user;
            match is_open.load(Ordering::SeqCst) {
                true => Ok(format!("what is {name}'s")),
                false => Err(format!("{name} has to open it")),
            }
        });
        assert!(resources.provides::<String>());
        let context = ToolContext::new(Caller::new("ada", Permission::User)).with_resources(resources);
        assert_eq!(context.missing::<String>().unwrap(), "needs String: ada has to open it");
        assert!(context.resource::<String>().is_none());
        open.store(true, Ordering::SeqCst);
        assert_eq!(context.missing::<String>(), None);
        assert_eq!(*context.resource::<String>().unwrap(), "what is ada's");
    }
}
