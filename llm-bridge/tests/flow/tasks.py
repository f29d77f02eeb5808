"""Prints the tasks of `agentdojo` as JSON, from its installed package: {suite: {"tools": [names], "users": [{"prompt", "calls"}],
"injections": [{"id", "calls"}]}}. A call is [name, arguments].

The package imports the SDKs of all model providers, which nothing here uses: they are stood in for.
"""

import importlib.abc
import importlib.machinery
import json
import sys
from unittest.mock import MagicMock

NOT_NEEDED = {
    "anthropic", "click", "cohere", "google", "langchain", "openai", "requests", "rich", "tenacity", "torch", "transformers", "vertexai",
}


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in NOT_NEEDED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, StandIn())

from agentdojo.task_suite.load_suites import get_suites  # noqa: E402


def calls(task, environment):
    try:
        made = task.ground_truth(environment.model_copy(deep=True))
    except Exception:  # noqa: BLE001 - a few look for what only an injected environment has
        return []
    return [[call.function, json.loads(json.dumps(dict(call.args), default=str))] for call in made]


tasks = {}
for name, suite in get_suites("v1.2.2").items():
    environment = suite.load_and_inject_default_environment({})
    tasks[name] = {
        "tools": [tool.name for tool in suite.tools],
        "users": [{"prompt": task.PROMPT, "calls": calls(task, environment)} for task in suite.user_tasks.values()],
        "injections": [{"id": key, "calls": calls(task, environment)} for key, task in suite.injection_tasks.items()],
    }
json.dump(tasks, sys.stdout)
