//! Routes with their OpenAPI operations: none can be added without the other.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    middleware,
    routing::{MethodFilter, on},
};

use super::{
    App,
    callers::{access::check_key, admin, identity::Identities},
    openapi::Operation,
};
use crate::turn::Backend;

/// Routes with their descriptions.
pub(super) struct Routes {
    router: Router<App>,
    operations: Vec<(&'static str, Operation)>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    /// Adds a handler for the operation's method of a path, with and without a slash at its end.
    pub(super) fn add<T: 'static>(
        mut self,
        path: &'static str,
        handler: impl Handler<T, App>,
        operation: Operation,
    ) -> Self {
        // Every method that an operation has is one that axum routes.
        let method = MethodFilter::try_from(operation.method.clone()).unwrap_or(MethodFilter::GET);
        self.operations.push((path, operation));
        let mut router = self.router.route(path, on(method, handler.clone()));
        // The root ends with one, and a rest of a path may.
        if path != "/" && !path.contains("{*") {
            router = router.route(&format!("{path}/"), on(method, handler));
        }
        Self { router, ..self }
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// Puts a layer before all routes added so far.
    pub(super) fn behind(self, layer: impl FnOnce(Router<App>) -> Router<App>) -> Self {
        Self { router: layer(self.router), ..self }
    }

    /// Lets what the routes added so far change be done to its end, also where the client has gone.
    pub(super) fn uninterrupted(self, backend: &Backend) -> Self {
        let layer = middleware::from_fn_with_state(backend.clone(), admin::to_its_end);
        self.behind(|router| router.route_layer(layer))
    }

    /// Checks who sends a request, for all routes added so far.
    pub(super) fn behind_key(self, identities: Arc<Identities>) -> Self {
        let Self { router, operations } = self;
        Self {
            router: router.route_layer(middleware::from_fn_with_state(identities, check_key)),
            operations: operations
                .into_iter()
                .map(|(path, operation)| (path, operation.behind_key()))
                .collect(),
        }
    }

    pub(super) fn into_parts(self) -> (Router<App>, Vec<(&'static str, Operation)>) {
        (self.router, self.operations)
    }
}
