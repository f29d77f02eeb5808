//! Reads SQL that somebody else wrote, and lets through one `SELECT` over one view.
//!
//! This says in plain words what is not allowed. It is not what keeps the rest of the file safe: that is the connection, which cannot
//! write, and SQLite's own program of the statement, which is looked through before it runs.

use std::ops::ControlFlow;

use sqlparser::{
    ast::{
        BinaryOperator, Expr, FunctionArguments, ObjectName, Query, SetExpr, Statement, TableFactor, Value,
        ValueWithSpan, Visit, Visitor,
    },
    dialect::SQLiteDialect,
    parser::Parser,
    tokenizer::{Span, Token, Tokenizer},
};

/// The view that may be read.
pub(crate) const VIEW: &str = "documents";
/// A longer statement is not read, in bytes.
const MAX_BYTES: usize = 4000;
/// Neither is one of more words and signs, as each of them may lie within the one before.
const MAX_TOKENS: usize = 500;

/// The functions that may be called: they look, their answer is no longer than what they are given, and they take no time. So there is
/// no `group_concat` and no `printf`.
pub(crate) const FUNCTIONS: [&str; 39] = [
    "abs",
    "avg",
    "coalesce",
    "count",
    "date",
    "datetime",
    "dense_rank",
    "first_value",
    "ifnull",
    "iif",
    "instr",
    "json_array_length",
    "json_extract",
    "json_type",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "lower",
    "ltrim",
    "max",
    "min",
    "nullif",
    "rank",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "strftime",
    "substr",
    "substring",
    "sum",
    "time",
    "total",
    "trim",
    "typeof",
    "unixepoch",
    "upper",
];

/// Room for reading the deepest statement that is read at all: each level takes a hundred kilobytes of a build that is not optimised.
const STACK: usize = 64 * 1024 * 1024;

/// The statement as it is to be run: written anew from what was understood, so that nothing runs that was not.
///
/// # Errors
/// What is not allowed or not understood, for whoever wrote it.
pub(crate) fn checked(sql: &str) -> Result<String, String> {
    // Reading goes down as deep as the statement does, and a thread that runs out of stack ends the program.
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read(sql));
        let read = reading.map_err(|error| format!("no thread to read the statement: {error}"))?.join();
        read.unwrap_or_else(|_| Err("this is no SQL that is understood here".to_owned()))
    })
}

fn read(sql: &str) -> Result<String, String> {
    if sql.len() > MAX_BYTES {
        return Err(format!(
            "the statement has {} bytes, and {MAX_BYTES} are the most; ask for less at once",
            sql.len()
        ));
    }
    let dialect = SQLiteDialect {};
    let tokens = Tokenizer::new(&dialect, sql)
        .tokenize_with_location()
        .map_err(|error| format!("this is no SQL: {error}"))?;
    if tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).count() > MAX_TOKENS {
        return Err("the statement is too long; ask for less at once".to_owned());
    }
    let parsed = Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements();
    let statements = parsed.map_err(|error| format!("this is no SQL that is understood here: {error}"))?;
    let [statement] = statements.as_slice() else {
        return Err(match statements.len() {
            0 => format!("there is no statement; write one SELECT over `{VIEW}`"),
            count => format!("there are {count} statements; write one SELECT"),
        });
    };
    if !matches!(statement, Statement::Query(_)) {
        return Err(format!("only SELECT is allowed; write one SELECT over `{VIEW}`"));
    }
    match statement.visit(&mut Check { sql, names: vec![VIEW.to_owned()] }) {
        ControlFlow::Continue(()) => {}
        ControlFlow::Break(fault) => return Err(fault),
    }
    let written = statement.to_string();
    // What is written anew has to mean the same: `- -1` would become a comment.
    let again = Parser::parse_sql(&dialect, &written).ok();
    match again.is_some_and(|again| again.iter().map(ToString::to_string).eq([written.as_str()])) {
        true => Ok(written),
        false => {
            Err("this is no SQL that is understood here; put parentheses around what has two signs before it"
                .to_owned())
        }
    }
}

/// Whether a statement may be run as far as its parts say.
struct Check<'s> {
    sql: &'s str,
    /// What may stand behind FROM: the view, and the names that WITH gives.
    names: Vec<String>,
}

impl Check<'_> {
    /// Whether what stands there begins with that sign.
    fn begins(&self, span: &Span, sign: char) -> bool {
        let place = |number: u64| usize::try_from(number).ok()?.checked_sub(1);
        let line = place(span.start.line).and_then(|line| self.sql.split('\n').nth(line));
        line.and_then(|line| line.chars().nth(place(span.start.column)?)) == Some(sign)
    }
}

impl Visitor for Check<'_> {
    type Break = String;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<String> {
        match statement {
            Statement::Query(_) => ControlFlow::Continue(()),
            _ => ControlFlow::Break("only SELECT is allowed".to_owned()),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.push(cte.alias.name.value.to_lowercase());
        }
        let fault = if query.with.as_ref().is_some_and(|with| with.recursive) {
            "WITH RECURSIVE is not allowed"
        } else if !query.locks.is_empty() {
            "FOR UPDATE is not allowed"
        } else if !is_select(&query.body) {
            "only SELECT is allowed"
        } else {
            return ControlFlow::Continue(());
        };
        ControlFlow::Break(fault.to_owned())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<String> {
        let name = relation.to_string();
        let plain =
            relation.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.to_lowercase());
        let is_known = relation.0.len() == 1 && plain.is_some_and(|name| self.names.contains(&name));
        match is_known {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(format!("`{name}` cannot be read; there is only `{VIEW}`")),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<String> {
        match table {
            TableFactor::Table { args: None, .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(format!(
                "`{table}` cannot be read; there is only `{VIEW}`, and no function behind FROM"
            )),
        }
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<String> {
        match &value.value {
            Value::Placeholder(name) => {
                ControlFlow::Break(format!("nothing is given for `{name}`; write the value itself"))
            }
            // It would be written anew as the bytes `X'1F'`.
            Value::HexStringLiteral(digits) if self.begins(&value.span, '0') => ControlFlow::Break(format!(
                "hexadecimal numbers are not understood here; write 0x{digits} with the digits 0 to 9"
            )),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<String> {
        let fault = match expression {
            Expr::Function(function) => {
                let name = function.name.to_string().to_lowercase();
                let has_subquery = matches!(function.args, FunctionArguments::Subquery(_));
                match FUNCTIONS.contains(&name.as_str()) && !has_subquery {
                    true => return ControlFlow::Continue(()),
                    false => {
                        format!("the function `{name}` is not allowed; there are {}", FUNCTIONS.join(", "))
                    }
                }
            }
            Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } => {
                "`||` is not allowed; select the columns beside one another".to_owned()
            }
            Expr::BinaryOp { op: BinaryOperator::Match | BinaryOperator::Regexp, .. } => {
                "MATCH and REGEXP are not allowed; use LIKE".to_owned()
            }
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(fault)
    }
}

fn is_select(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        // Its parts are looked at by themselves.
        SetExpr::Query(_) | SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => is_select(left) && is_select(right),
        _ => false,
    }
}
