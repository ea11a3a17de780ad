"""``python -m collectors``: the collectors without the analyzer."""

from collectors.cli import main

raise SystemExit(main())
