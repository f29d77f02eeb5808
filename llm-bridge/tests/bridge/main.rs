//! The bridge between clients, scripted model servers and a registry: requirements B2 to B9, M11, P6 to P8, T1 to T9.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]

mod b17_changes;
mod b17_chat_documents;
mod b17_chats;
mod b17_chats_store;
mod b17_console;
mod b17_console_commands;
mod b17_console_upkeep;
mod b17_document_processing;
mod b17_pages;
mod b17_rules;
mod b20_flow;
mod b21_asked_of_others;
mod b21_hostile_collector;
mod b21_page_sign_in;
mod b21_sign_in;
mod b21_traces;
mod b_apis;
mod b_bridge;
mod b_mcp;
mod b_openapi;
mod b_threads;
mod b_upstreams;
mod g_stream_cost;
mod m_chat_loop;
mod p_chat;
mod p_documents_http;
mod support;
mod t_access;
mod t_approval_events;
mod t_audit;
mod t_keys;
mod t_metrics;
mod t_origins;
mod t_path_table;
mod t_personas;
mod t_registering;
mod t_standing;
mod t_tags;
mod t_tenants;
