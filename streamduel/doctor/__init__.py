"""What `streamduel doctor` finds out: would the service work, and would its records count?"""

from streamduel.doctor.examination import examine

__all__ = ["examine"]
