//! Python bindings of `toolrack-dialects`: [`parse`] for a whole text, [`Scanner`] for a stream. What Python programs see is described in
//! `python/toolrack_dialects/_native.pyi`.

use std::sync::Arc;

use ::toolrack_dialects::{self as dialects, Event, Offered, OfferedTool, ScanOptions};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use serde_json::Value;

/// A tool call.
#[pyclass(module = "toolrack_dialects", frozen, eq, hash, get_all)]
#[derive(Clone, PartialEq, Eq, Hash)]
struct Call {
    index: usize,
    name: String,
    arguments: String,
    source: String,
    dialect: String,
    repaired: bool,
    closed: bool,
}

#[pymethods]
impl Call {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("name", "arguments")
    }

    #[new]
    fn new(
        index: usize,
        name: String,
        arguments: String,
        source: String,
        dialect: String,
        repaired: bool,
        closed: bool,
    ) -> Self {
        Self { index, name, arguments, source, dialect, repaired, closed }
    }

    /// For copies, also in other processes.
    fn __getnewargs__(&self) -> (usize, &str, &str, &str, &str, bool, bool) {
        let Self { index, name, arguments, source, dialect, repaired, closed } = self;
        (*index, name, arguments, source, dialect, *repaired, *closed)
    }

    /// The arguments as Python values.
    fn parsed_arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.arguments,))
    }

    fn __repr__(&self) -> String {
        format!("Call({}, {})", quoted(&self.name), quoted(&self.arguments))
    }
}

impl From<dialects::Call> for Call {
    fn from(call: dialects::Call) -> Self {
        let dialects::Call { index, name, arguments, source, dialect, repaired, closed, .. } = call;
        Self { index, name, arguments, source, dialect: dialect.to_owned(), repaired, closed }
    }
}

/// Classes of events that hold a text.
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident)*) => {$(
        $(#[$about])*
        #[pyclass(module = "toolrack_dialects", frozen, eq, get_all)]
        #[derive(PartialEq)]
        struct $name {
            text: String,
        }

        #[pymethods]
        impl $name {
            #[classattr]
            fn __match_args__() -> (&'static str,) {
                ("text",)
            }

            fn __repr__(&self) -> String {
                format!(concat!(stringify!($name), "({})"), quoted(&self.text))
            }
        }
    )*};
}

texts! {
    /// Text for the user.
    Text
    /// The model's thinking.
    Reasoning
    /// Delimiters, for nobody.
    Frame
}

/// A call has begun.
#[pyclass(module = "toolrack_dialects", frozen, eq, get_all)]
#[derive(PartialEq)]
struct CallBegin {
    index: usize,
    name: String,
    dialect: &'static str,
}

#[pymethods]
impl CallBegin {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("index", "name")
    }

    fn __repr__(&self) -> String {
        format!("CallBegin({}, {})", self.index, quoted(&self.name))
    }
}

/// The next piece of a call's arguments.
#[pyclass(module = "toolrack_dialects", frozen, eq, get_all)]
#[derive(PartialEq)]
struct CallDelta {
    index: usize,
    arguments: String,
}

#[pymethods]
impl CallDelta {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("index", "arguments")
    }

    fn __repr__(&self) -> String {
        format!("CallDelta({}, {})", self.index, quoted(&self.arguments))
    }
}

/// What had begun as a call is none.
#[pyclass(module = "toolrack_dialects", frozen, eq, get_all)]
#[derive(PartialEq)]
struct Aborted {
    index: usize,
    source: String,
    reason: String,
}

#[pymethods]
impl Aborted {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("index", "reason")
    }

    fn __repr__(&self) -> String {
        format!("Aborted({}, {})", self.index, quoted(&self.reason))
    }
}

/// A whole text, parsed.
#[pyclass(module = "toolrack_dialects", frozen, get_all)]
struct Parsed {
    content: String,
    reasoning: String,
    calls: Py<PyTuple>,
    dialect: Option<String>,
}

#[pymethods]
impl Parsed {
    #[new]
    fn new(content: String, reasoning: String, calls: Py<PyTuple>, dialect: Option<String>) -> Self {
        Self { content, reasoning, calls, dialect }
    }

    /// For copies, also in other processes.
    fn __getnewargs__(&self, py: Python<'_>) -> (&str, &str, Py<PyTuple>, Option<&str>) {
        (&self.content, &self.reasoning, self.calls.clone_ref(py), self.dialect.as_deref())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (content, reasoning) = (quoted(&self.content), quoted(&self.reasoning));
        Ok(format!("Parsed(content={content}, reasoning={reasoning}, calls={})", self.calls.bind(py).repr()?))
    }
}

/// Parses a text that comes in pieces.
#[pyclass(module = "toolrack_dialects")]
struct Scanner {
    scanner: dialects::Scanner,
    is_finished: bool,
}

#[pymethods]
impl Scanner {
    #[new]
    #[pyo3(signature = (tools=None, *, thinking=false, dialect=None, deltas=false, max_call_bytes=8388608))]
    fn new(
        tools: Option<&Bound<'_, PyAny>>,
        thinking: bool,
        dialect: Option<&str>,
        deltas: bool,
        max_call_bytes: usize,
    ) -> PyResult<Self> {
        let options = options(thinking, dialect)?.deltas(deltas).max_call_bytes(max_call_bytes);
        Ok(Self { scanner: dialects::Scanner::new(offered(tools)?, options), is_finished: false })
    }

    fn push<'py>(&mut self, py: Python<'py>, text: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.is_finished {
            return Err(PyRuntimeError::new_err("the scanner is finished; make one for each text"));
        }
        let mut events = Vec::new();
        self.scanner.push(text, &mut |event: Event<'_>| events.push(to_python(py, event)));
        events.into_iter().collect()
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.is_finished, true) {
            self.scanner.finish(&mut |event: Event<'_>| events.push(to_python(py, event)));
        }
        events.into_iter().collect()
    }
}

/// Parses a whole text.
#[pyfunction]
#[pyo3(signature = (text, tools=None, *, thinking=false, dialect=None))]
fn parse(
    py: Python<'_>,
    text: &str,
    tools: Option<&Bound<'_, PyAny>>,
    thinking: bool,
    dialect: Option<&str>,
) -> PyResult<Parsed> {
    let (offered, options) = (offered(tools)?, options(thinking, dialect)?);
    let dialects::Parsed { content, reasoning, calls, dialect, .. } =
        py.detach(|| dialects::parse(text, offered, options));
    let calls = PyTuple::new(
        py,
        calls.into_iter().map(|call| Bound::new(py, Call::from(call))).collect::<PyResult<Vec<_>>>()?,
    )?;
    Ok(Parsed { content, reasoning, calls: calls.unbind(), dialect: dialect.map(str::to_owned) })
}

/// The names of the dialects.
#[pyfunction]
fn dialect_names() -> Vec<&'static str> {
    dialects::dialects().map(|dialect| dialect.name).collect()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(parse, module)?)?;
    module.add_function(wrap_pyfunction!(dialect_names, module)?)?;
    module.add_class::<Scanner>()?;
    module.add_class::<Parsed>()?;
    module.add_class::<Call>()?;
    module.add_class::<Text>()?;
    module.add_class::<Reasoning>()?;
    module.add_class::<Frame>()?;
    module.add_class::<CallBegin>()?;
    module.add_class::<CallDelta>()?;
    module.add_class::<Aborted>()
}

fn to_python<'py>(py: Python<'py>, event: Event<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match event {
        Event::Text(text) => Bound::new(py, Text { text: text.to_owned() })?.into_any(),
        Event::Reasoning(text) => Bound::new(py, Reasoning { text: text.to_owned() })?.into_any(),
        Event::Frame(text) => Bound::new(py, Frame { text: text.to_owned() })?.into_any(),
        Event::CallBegin { index, name, dialect } => {
            Bound::new(py, CallBegin { index, name: name.to_owned(), dialect })?.into_any()
        }
        Event::CallDelta { index, arguments } => {
            Bound::new(py, CallDelta { index, arguments: arguments.to_owned() })?.into_any()
        }
        Event::Call(call) => Bound::new(py, Call::from(call))?.into_any(),
        Event::Aborted { index, source, reason } => {
            Bound::new(py, Aborted { index, source: source.to_owned(), reason: reason.to_string() })?
                .into_any()
        }
    })
}

fn options(thinking: bool, dialect: Option<&str>) -> PyResult<ScanOptions> {
    let options = ScanOptions::default().thinking(thinking);
    let Some(name) = dialect else { return Ok(options) };
    let row = dialects::dialect(name).ok_or_else(|| {
        PyValueError::new_err(format!("no dialect is called {name:?}; dialect_names() lists them"))
    });
    Ok(options.only(row?))
}

/// The tools of a list of names or of tools as the APIs have them. Without a list any name is that of a tool.
fn offered(tools: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<Offered>> {
    let Some(tools) = tools else { return Ok(Offered::any().into()) };
    if tools.is_instance_of::<PyString>() || tools.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err("`tools` is a list"));
    }
    let tools: Vec<OfferedTool> =
        tools.try_iter()?.map(|tool| offered_tool(&tool?)).collect::<PyResult<_>>()?;
    Ok(Offered::new(tools).into())
}

fn offered_tool(tool: &Bound<'_, PyAny>) -> PyResult<OfferedTool> {
    if let Ok(name) = tool.extract::<String>() {
        return Ok(OfferedTool::new(name));
    }
    let Ok(tool) = tool.cast::<PyDict>() else {
        return Err(PyTypeError::new_err("a tool is its name, or a dict with `name` and `parameters`"));
    };
    let text: String = tool.py().import("json")?.call_method1("dumps", (tool,))?.extract()?;
    let tool: Value =
        serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tool = tool.get("function").unwrap_or(&tool);
    let name = tool.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| PyValueError::new_err("a tool has no `name`"))?;
    // As OpenAI, Anthropic and MCP call it.
    let schema = ["parameters", "input_schema", "inputSchema"].into_iter().find_map(|key| tool.get(key));
    let mut offered = OfferedTool::new(name);
    offered.schema = schema.cloned().map(Arc::new);
    Ok(offered)
}

/// A text as Python writes it, near enough for a `repr`.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}
