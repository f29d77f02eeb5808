//! Model servers: which kind it is, what each is asked in, and what the default model is.

mod accepted;
mod by_itself;
mod context;
mod files;
mod kinds;
mod ollama;
mod parallel;
mod raw;
mod several;
mod toolracks;
