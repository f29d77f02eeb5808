//! The bundled tools.
