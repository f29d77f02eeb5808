"""What the programs of this folder are asked, from their environment, and how they answer."""

import asyncio
import json
import os

# How the MCP server is reached: {"command": …, "args": […]} or {"url": …}.
SERVER = json.loads(os.environ["TOOLRACK_MCP"])
MODEL = {"base_url": os.environ["TOOLRACK_UPSTREAM"], "api_key": "none"}
QUESTION = "Where are the keys of the house?"


def answer(ask):
    """Prints what the model said in the end."""
    print(json.dumps({"text": asyncio.run(ask())}), flush=True)
