from ingestd.api import plan as plan
from ingestd.api import sync as sync
