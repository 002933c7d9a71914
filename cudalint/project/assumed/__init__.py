"""What nobody in sight calls: launchers that no entry reached, as callers are assumed to call them."""
