//! Reads tool calls and reasoning out of the text a model writes, as it is streamed.
