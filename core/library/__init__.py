"""Models on disk: found, named, indexed, imported."""

from octavo.core.library.catalog import Catalog
from octavo.core.library.importer import ImportMode, ImportPlan, plan_import, run_import
from octavo.core.library.models import Model

__all__ = ["Catalog", "ImportMode", "ImportPlan", "Model", "plan_import", "run_import"]
